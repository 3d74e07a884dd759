#!/usr/bin/env bash
# Summary: Freeze a service (SIGSTOP, or the engine's pause); it keeps its memory and its sockets.
# Usage: scripts/pause.sh SERVICE [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/pause.sh pause "$@"
