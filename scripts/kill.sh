#!/usr/bin/env bash
# Summary: Kill a service with SIGKILL, all of its processes at once; it stays down until started.
# Usage: scripts/kill.sh SERVICE [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/kill.sh kill "$@"
