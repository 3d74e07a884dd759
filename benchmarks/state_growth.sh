#!/usr/bin/env bash
# Summary: Measure how checkpoints and restores grow with the open windows: state on the heap, and in RocksDB.
# Usage: benchmarks/state_growth.sh [WINDOWS[,WINDOWS...] [CHECKPOINTS [RESTORES]]] | plot
#
# WINDOWS: 1000,10000,100000,1000000 by default; CHECKPOINTS: 5 and RESTORES: 3 for each. Runs its own stack in a
# temporary folder, on free ports. Prints a table, and writes docs/pictures/state_growth.json and .svg; `plot` makes table
# and picture again from the JSON. The windows are counted in the state and, once they are closed, by the verdict.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/state_growth.sh benchmark state_growth "$@"
