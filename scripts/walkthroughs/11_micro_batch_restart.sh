#!/usr/bin/env bash
# Summary: SIGKILL between offsets/N and commits/N, and SIGTERM: which batch does a restart run?
# Usage: scripts/walkthroughs/11_micro_batch_restart.sh [--pause] [--clean]
#
# --pause waits for Enter before each step, for a class. --clean first removes what an earlier run left.
# Its files stay in output/labs/11_micro_batch_restart to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack
# Takes: 1 minute
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/11_micro_batch_restart.sh lab micro_batch_restart "$@"
