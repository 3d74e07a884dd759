#!/usr/bin/env bash
# Summary: Measure the verdict on faultless outputs of many visits: seconds and memory, reading and judging apart.
# Usage: benchmarks/verdict.sh [VISITS [VISITS_PER_ID [VALUE_BYTES]]]
#
# 1000000 visits, 4 for each visit_id and 440 bytes per value by default; VISITS_PER_ID=1 makes a window for each visit.
# Runs its own broker in a temporary folder, on free ports. No job runs: benchmarks/faultless.py writes the outputs of
# faultless ones.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/verdict.sh benchmark verdict_cost "$@"
