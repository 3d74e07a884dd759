#!/usr/bin/env bash
# Summary: Submit the Flink job, to read the topic from its earliest offset; prints the job id.
# Usage: scripts/flink_submit.sh [--job windows|classic] [--mode exactly-once|at-least-once]
#        [--program FILE.py] [--backend compose|local] [-- ARGUMENT...]
#
# Refused while the job runs: two jobs would share one set of transactional ids.
# To continue from a checkpoint instead: scripts/flink_restore.sh
# --program: a changed program of this job, such as flink_job/one_more_aggregate.py; the ARGUMENTs are its own.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/flink_submit.sh flink_submit "$@"
