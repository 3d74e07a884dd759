#!/usr/bin/env bash
# Summary: List the Flink checkpoints, newest last, and show which can be restored.
# Usage: scripts/flink_checkpoints.sh [--json] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/flink_checkpoints.sh flink_checkpoints "$@"
