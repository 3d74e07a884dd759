#!/usr/bin/env bash
# Summary: List the Flink checkpoints on disk, newest last, and say which can be restored.
# Usage: scripts/flink_checkpoints.sh [--json] [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_running jobmanager
service_exec jobmanager python -m inspector.flink list "${ARGS[@]}"
