#!/usr/bin/env bash
# Summary: Measure how long the inspector takes for a Spark checkpoint of many batches, compared with only reading its files.
# Usage: benchmarks/inspector.sh [BATCHES]
#
# BATCHES: 10000 by default. Prints a table; needs no stack.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/inspector.sh benchmark inspect_batches "$@"
