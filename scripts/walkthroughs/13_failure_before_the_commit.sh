#!/usr/bin/env bash
# Summary: A batch that runs again after its commit was lost: which sinks repeat its rows?
# Usage: scripts/walkthroughs/13_failure_before_the_commit.sh [--pause] [--clean]
#
# --pause waits for Enter before each step, for a class. --clean first removes what an earlier run left.
# Its files stay in output/labs/13_failure_before_the_commit to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack
# Takes: 1 minute
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/13_failure_before_the_commit.sh lab failure_before_the_commit "$@"
