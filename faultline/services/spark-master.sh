#!/usr/bin/env bash
# Summary: Run the master of Spark's standalone cluster in the foreground.
# Usage: faultline/services/spark-master.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-tools/bin/python" -m spark_job.standalone spark-master
