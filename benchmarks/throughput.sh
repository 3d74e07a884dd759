#!/usr/bin/env bash
# Summary: Measure the CPU time of both pipelines per million visits, beside plain and naive ones.
# Usage: benchmarks/throughput.sh [RECORDS [ROUNDS]]
#
# RECORDS: 1000000 by default; ROUNDS: 5. Runs its own stack in a temporary folder, on free ports. Records are
# counted in and out, and the verdict judges each output. The ratios are what counts, not the seconds.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/throughput.sh benchmark throughput "$@"
