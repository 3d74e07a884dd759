#!/usr/bin/env bash
# Summary: Which files does a file source take, and which does it ignore?
# Usage: scripts/walkthroughs/12_devices_from_files.sh [--pause] [--clean]
#
# --pause waits for Enter before each step, for a class. --clean first removes what an earlier run left.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 the lab could not run.
# Needs neither Docker nor the stack. Its files stay in output/labs/12_devices_from_files to look at.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/verb.sh" scripts/walkthroughs/12_devices_from_files.sh lab devices_from_files "$@"
