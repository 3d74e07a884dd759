#!/usr/bin/env bash
# Summary: Start one service of a stack that is up; extra arguments go to the service.
# Usage: scripts/start.sh SERVICE [ARGUMENT...] [--backend compose|local]
#
# Arguments: flags of the generator or of the synchronizer (spark); they are checked first. Returns once the broker or
# the JobManager answers; the others may still be on their way.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
readonly START_LIMIT_SECONDS=60
load_stack "$@"
require_service "${ARGS[0]:-}"
[[ "${ARGS[0]}" == kafka ]] || require_running kafka
if [[ "$(service_state "${ARGS[0]}")" == running ]]; then
  say "${ARGS[0]} is running already"
  exit 0
fi
service="${ARGS[0]}" arguments=("${ARGS[@]:1}")
check_flags "${service}" "${arguments[@]}"
service_start "${service}" "${arguments[@]}"
wait_for "${START_LIMIT_SECONDS}" "${service} to answer" service_answers "${service}" ||
  die "${service} was started and does not answer; see scripts/logs.sh ${service}"
say "${service} was started"
if [[ "${service}" == jobmanager ]]; then
  say "a job that ran on the JobManager before is gone with it: scripts/flink_restore.sh latest brings it back"
fi
