#!/usr/bin/env bash
# Summary: Show the Flink job as one line of JSON: state, checkpoints, where it was restored from.
# Usage: scripts/flink_status.sh [--wait-checkpoints N] [--wait-seconds S] [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_running jobmanager
service_exec jobmanager python -m flink_job.status "${ARGS[@]}"
