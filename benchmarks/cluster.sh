#!/usr/bin/env bash
# Summary: Measure how work spreads over the small cluster, and its CPU time per visit beside a single machine's.
# Usage: benchmarks/cluster.sh [RECORDS [ROUNDS]]
#
# RECORDS: 3200000 by default; ROUNDS: 2. Runs two stacks of its own in temporary folders, on free ports: one of each
# service, and the profile `cluster`. Records are counted in and out, and the verdict judges each output.
# Exit codes: 0 the aims are met, 1 a measurement is not valid, 3 an aim is missed.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/cluster.sh benchmark cluster "$@"
