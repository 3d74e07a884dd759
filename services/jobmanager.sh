#!/usr/bin/env bash
# Summary: Run Flink's JobManager (and its web page) in the foreground.
# Usage: services/jobmanager.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

home="$("${ARTIFACTS}/venv-flink/bin/python" -m flink_job.home jobmanager)"
eval "${home}"
exec "${FLINK_HOME}/bin/jobmanager.sh" start-foreground
