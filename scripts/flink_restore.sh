#!/usr/bin/env bash
# Summary: Submit the Flink job from a retained checkpoint; prints the job id.
# Usage: scripts/flink_restore.sh [latest|chk-N|PATH] [--job windows|classic] [--mode exactly-once|at-least-once]
#        [--program FILE.py] [--backend compose|local] [-- ARGUMENT...]
#
# First prints the offset of each partition from which the job will continue. Only complete checkpoints are
# accepted: a folder without _metadata is not a checkpoint. Windows that were committed after an older
# checkpoint are written again when the job goes back to it.
# --program: a changed program of this job, such as flink_job/one_more_aggregate.py; the ARGUMENTs are its own.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/flink_restore.sh flink_restore "$@"
