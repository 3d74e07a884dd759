#!/usr/bin/env bash
# Summary: State, watermarks and a Delta source's position in a checkpoint.
# Usage: scripts/walkthroughs/14_what_a_checkpoint_holds.sh [--pause] [--clean]
#
# --pause waits for Enter before each step, for a class. --clean first removes what an earlier run left.
# Its files stay in output/labs/14_what_a_checkpoint_holds to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack
# Takes: 2 minutes
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/14_what_a_checkpoint_holds.sh lab what_a_checkpoint_holds "$@"
