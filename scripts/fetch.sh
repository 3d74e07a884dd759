#!/usr/bin/env bash
# Summary: Fetch or build everything that the stack needs; afterwards everything works offline.
# Usage: scripts/fetch.sh [--backend compose|local] [--profile cluster]
#
# --profile cluster: also the object store, and the engines' clients for it.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/fetch.sh fetch "$@"
