#!/usr/bin/env bash
# Summary: Play a recorded run of the fault matrix in the browser: the log, the checkpoints, what was read again.
# Usage: scripts/page.sh --replay FOLDER...
#
# FOLDER is results/<time> of scripts/faults.sh, or one row in it. Writes report.html beside each timeline.json, and
# prints its address. The file holds all that it needs: it opens without a stack, without Java, Docker or a network.
# Exit codes: 0 written, 2 there is no recorded run.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/page.sh page "$@"
