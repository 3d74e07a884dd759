#!/usr/bin/env bash
# Summary: Run a Flink JobManager (and its web page) in the foreground.
# Usage: faultline/services/jobmanager.sh [jobmanager-2]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

exports="$("${ARTIFACTS}/venv-flink/bin/python" -m flink_job.configuration "${1:-jobmanager}")"
eval "${exports}"
exec "${FLINK_HOME}/bin/jobmanager.sh" start-foreground
