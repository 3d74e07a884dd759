#!/usr/bin/env bash
# Summary: Show the last log lines of a service.
# Usage: scripts/logs.sh SERVICE [LINES] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/logs.sh logs "$@"
