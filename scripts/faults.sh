#!/usr/bin/env bash
# Summary: Break the stack in every way of the matrix, and judge each by its records.
# Usage: scripts/faults.sh list | run NAME... | all [--backend compose|local]
#
# list  the rows: what breaks, what is promised, and why
# run   these rows, one after the other
# all   every row
#
# Results go to results/<time>/<row>/: report.html, verdict, timeline, logs. A stack that is down is started, and stopped
# at the end. A row that leaves duplicates (list says which), and a failed one before the next, ends in scripts/reset.sh:
# topics, checkpoints and outputs are removed. Exit codes: 0 every row passed, 1 one failed, 2 one does not apply here, or bad input.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/faults.sh faults "$@"
