#!/usr/bin/env bash
# Summary: Change a query that has a checkpoint, move it to a new one, read its source again; each counted.
# Usage: scripts/walkthroughs/16_good_practice.sh [--pause] [--clean]
#
# --pause waits for Enter before each step; --clean first removes what an earlier run left.
# Its files stay in output/labs/16_good_practice to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack (it starts a broker of its own)
# Takes: 2 minutes
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/16_good_practice.sh lab good_practice "$@"
