#!/usr/bin/env bash
# Summary: Submit the Flink job from a retained checkpoint; prints the job id.
# Usage: scripts/flink_restore.sh [latest|chk-N|PATH] [--job windows|classic] [--mode exactly-once|at-least-once]
#        [--backend compose|local]
#
# First prints the offset of each partition from which the job will continue. Only complete checkpoints are
# accepted: a folder without _metadata is not a checkpoint. Windows that were committed after an older
# checkpoint are written again when the job goes back to it.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/flink_restore.sh flink_restore "$@"
