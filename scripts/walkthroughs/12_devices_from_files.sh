#!/usr/bin/env bash
# Summary: Which files does a file source take, and which does it ignore?
# Usage: scripts/walkthroughs/12_devices_from_files.sh [--pause] [--clean]
#
# --pause waits for Enter before each step, for a class. --clean first removes what an earlier run left.
# Its files stay in output/labs/12_devices_from_files to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack
# Takes: 1 minute
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/12_devices_from_files.sh lab devices_from_files "$@"
