#!/usr/bin/env bash
# Summary: Break the stack in every way of the matrix, and judge each by its records.
# Usage: scripts/faults.sh list | run NAME... | all [--seed N] [--mode exactly-once|at-least-once] [--stacks N] [--reset]
#        [--backend compose|local]
#
# list  the rows: what breaks, what is promised, and why; and the negative controls, which must be caught
# run   these rows, one after the other
# all   every row and every control
#
# --seed chooses the moment of each fault; without it, a random seed is printed. With --mode at-least-once windows may be
# written twice, but not lost.
# --stacks N shares the rows between so many stacks: the one of this project, and new ones that are removed at the end.
# A stack keeps about one core busy. Without this flag `run` takes one stack, and `all` one for each core, as far as
# the memory goes.
# --reset allows scripts/reset.sh on the running stack, which removes its topics, checkpoints and outputs. Rows that
# leave duplicates or have settings that the stack lacks need it (list says which), and so does a row after one that has
# failed.
#
# Results go to results/<time>/<row>/: report.html, verdict, timeline, logs. A stack that is down is started, and stopped
# at the end. Exit codes: 0 every row passed, 1 one failed, 2 one does not apply here, or bad input.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/faults.sh faults "$@"
