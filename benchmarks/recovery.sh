#!/usr/bin/env bash
# Summary: Measure the seconds from a SIGKILL to the next completed checkpoint or committed batch.
# Usage: benchmarks/recovery.sh [ROUNDS]
#
# ROUNDS: 5 by default. Runs stacks of its own in a temporary folder, on free ports, with the default checkpoint
# interval: one as it comes, one with a spare TaskManager and a standby JobManager. The verdict must hold in the end.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/recovery.sh benchmark recovery "$@"
