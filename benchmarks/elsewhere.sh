#!/usr/bin/env bash
# Summary: Measure the same windows in other engines: CPU time per million visits, and the verdict on each.
# Usage: benchmarks/elsewhere.sh [RECORDS [ROUNDS]]
#
# RECORDS: 200000 by default; ROUNDS: 5. Runs its own stack in a temporary folder, on free ports. Records are counted in
# and out, and the verdict judges each output.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/elsewhere.sh benchmark elsewhere "$@"
