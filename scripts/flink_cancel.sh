#!/usr/bin/env bash
# Summary: Cancel the Flink job without a savepoint; its externalized checkpoints are retained.
# Usage: scripts/flink_cancel.sh [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_running jobmanager
service_exec jobmanager python -m flink_job.cancel "${ARGS[@]}"
