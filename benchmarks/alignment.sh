#!/usr/bin/env bash
# Summary: Measure aligned and unaligned checkpoints under backpressure: seconds, bytes, how many of them complete.
# Usage: benchmarks/alignment.sh [VISITS]
#
# VISITS: 60000 by default, for each of the two kinds. Runs its own stack in a temporary folder, on free ports. The
# windowing job gets a slow step before its windows, so that visits wait in every buffer before it. The verdict judges
# the windows of both.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/alignment.sh benchmark alignment "$@"
