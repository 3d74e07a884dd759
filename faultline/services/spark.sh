#!/usr/bin/env bash
# Summary: Run the Spark synchronizer in the foreground; STACK_SPARK_ARGS: further flags, separated by spaces.
# Usage: faultline/services/spark.sh [FLAG...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

read -r -a more <<<"${STACK_SPARK_ARGS:-}"
cd "${ROOT}"
# bash 3.2 treats an empty array as unset.
exec "${ARTIFACTS}/venv-tools/bin/python" -m spark_job.visits_json_synchronizer ${more[@]+"${more[@]}"} "$@"
