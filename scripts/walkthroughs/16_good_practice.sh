#!/usr/bin/env bash
# Summary: Change a query that has a checkpoint, move it to a new one, read its source again; each counted.
# Usage: scripts/walkthroughs/16_good_practice.sh [--pause] [--clean]
#
# --pause waits for Enter before each step; --clean first removes what an earlier run left.
# Needs no running stack: it starts its own broker and Spark. Exit codes: 0 proven, 1 not, 2 it could not run.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/verb.sh" scripts/walkthroughs/16_good_practice.sh lab good_practice "$@"
