#!/usr/bin/env bash
# Summary: List all scripts by theme, with what each does.
# Usage: scripts/help.sh
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/help.sh help "$@"
