#!/usr/bin/env bash
# Summary: Run a Flink TaskManager in the foreground.
# Usage: faultline/services/taskmanager.sh [taskmanager-2|taskmanager-3|taskmanager-4]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

exec "${ARTIFACTS}/venv-flink/bin/python" -m flink_job.start "${1:-taskmanager}"
