#!/usr/bin/env bash
# Summary: Break the stack in every way of the matrix, and judge each by its records.
# Usage: scripts/faults.sh list | run NAME... | all [--seed N] [--mode exactly-once|at-least-once] [--stacks N]
#        [--backend compose|local]
#
# list  the rows: what breaks, what is promised, and why; and the negative controls, which must be caught
# run   these rows, one after the other
# all   every row and every control
#
# --stacks N shares the rows between so many stacks: the one of this project, and new ones that are removed at the end.
# A stack keeps about one core busy.
# --seed chooses the moment of each fault; without it, a random seed is printed. With --mode at-least-once a row has a
# new stack, and windows may be written twice, but not lost.
#
# Results go to results/<time>/<row>/: report.html, verdict, timeline, logs. A stack that is down is started, and stopped
# at the end. A row that leaves duplicates (list says which), and a failed one before the next, ends in scripts/reset.sh:
# topics, checkpoints and outputs are removed. Exit codes: 0 every row passed, 1 one failed, 2 one does not apply here, or
# bad input.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/faults.sh faults "$@"
