#!/usr/bin/env bash
# Summary: Fetch or build everything that the stack needs; afterwards everything works offline.
# Usage: scripts/fetch.sh [--backend compose|local]
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/fetch.sh fetch "$@"
