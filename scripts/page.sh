#!/usr/bin/env bash
# Summary: Serve the live page with buttons; or play a recorded run of the fault matrix.
# Usage: scripts/page.sh [--replay FOLDER...] [--backend compose|local]
#
# Without a flag: draws the log, both engines' positions, the checkpoints and what is read again, of the stack of this
# clone, and breaks and repairs it on demand. Prints the address, with the token that the buttons need; loopback only.
# Ctrl-C ends the page, and the stack goes on. Needs Python 3.11.
#
# --replay: FOLDER is results/<time> of scripts/faults.sh, or one row in it. Writes report.html beside each timeline.json,
# and prints its address. The file holds all that it needs: it opens without a stack, without Java, Docker or a network.
# Exit codes: 0 done, 2 there is no recorded run, or the page cannot be served.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/page.sh page "$@"
