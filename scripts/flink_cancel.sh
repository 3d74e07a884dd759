#!/usr/bin/env bash
# Summary: Cancel the Flink job without a savepoint; its externalized checkpoints are retained.
# Usage: scripts/flink_cancel.sh [--job windows|classic] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/flink_cancel.sh flink_cancel "$@"
