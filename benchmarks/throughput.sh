#!/usr/bin/env bash
# Summary: Measure both pipelines against Kafka's own consumer perf test, in one run, records counted in and out.
# Usage: benchmarks/throughput.sh [RECORDS]
#
# RECORDS: 1000000 by default; use at least half a million. Runs its own stack in a temporary folder,
# on free ports. Prints a table; the ratios are what counts, not the seconds.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib/verb.sh" benchmarks/throughput.sh benchmark throughput "$@"
