#!/usr/bin/env bash
# Summary: Measure the CPU time that the rule of a visit takes for a megabyte of anything, beside a common JSON parser.
# Usage: benchmarks/hostile_values.sh
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/hostile_values.sh benchmark hostile_values "$@"
