#!/usr/bin/env bash
# Summary: Measure how long the inspector takes for a Spark checkpoint of many batches, beside reading its files.
# Usage: benchmarks/inspector.sh [BATCHES]
#
# BATCHES: 10000 by default. Prints a table; needs no stack.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib/lab.sh"
[[ "${1:-1}" =~ ^[1-9][0-9]*$ || "$1" == -* ]] || die "BATCHES is a whole number, not '$1'"
cd "${ROOT}"
run_with_tools benchmarks.inspect_batches -- "$@"
