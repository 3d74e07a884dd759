#!/usr/bin/env bash
# Summary: After the generator has stopped, close every open window and wait until both pipelines have committed all.
# Usage: scripts/settle.sh [--wait SECONDS] [--backend compose|local]
#
# Two closing visits in each partition move event time past the last open window; if none is open, nothing is sent.
# --wait SECONDS  how long the pipelines may take (default 120)
# Exit codes: 0 settled, 1 a closing visit was not acknowledged, 2 not settled in time, or something is missing.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/settle.sh settle "$@"
