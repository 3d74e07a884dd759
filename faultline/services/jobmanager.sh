#!/usr/bin/env bash
# Summary: Run a Flink JobManager (and its web page) in the foreground.
# Usage: faultline/services/jobmanager.sh [jobmanager-2]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

exec "${ARTIFACTS}/venv-flink/bin/python" -m flink_job.start "${1:-jobmanager}"
