#!/usr/bin/env bash
# Summary: Show the Flink job as one line of JSON: state, checkpoints, where it was restored from.
# Usage: scripts/flink_status.sh [--job windows|classic] [--wait-checkpoints N] [--wait-begun] [--wait-seconds S]
#        [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/flink_status.sh flink_status "$@"
