#!/usr/bin/env bash
# Summary: Stop one service with SIGTERM and wait until it has ended.
# Usage: scripts/stop.sh SERVICE [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/stop.sh stop "$@"
