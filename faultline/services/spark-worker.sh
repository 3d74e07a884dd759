#!/usr/bin/env bash
# Summary: Run a worker of Spark's standalone cluster, with its executor, in the foreground.
# Usage: faultline/services/spark-worker.sh [spark-worker-2|spark-worker-3]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-tools/bin/python" -m spark_job.standalone "${1:-spark-worker}"
