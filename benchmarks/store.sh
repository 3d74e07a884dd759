#!/usr/bin/env bash
# Summary: Count the requests at the object store for checkpoints and micro-batches, and time the checkpoints.
# Usage: benchmarks/store.sh [VISITS_PER_SECOND [NUMBER]]
#
# VISITS_PER_SECOND: 4000 by default; NUMBER of checkpoints and of micro-batches: 10. Runs a small cluster of its own in
# a temporary folder, on free ports. The store itself counts.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/store.sh benchmark store_cost "$@"
