#!/usr/bin/env bash
# Summary: Judge a pipeline from its records: was anything lost, repeated, or never sent?
# Usage: scripts/verdict.sh spark|flink|all [--json] [--backend compose|local]
#
# Exit codes: 0 holds, 1 violated, 2 unknown.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
tool_run python -m verdict "${ARGS[@]}"
