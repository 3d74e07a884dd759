#!/usr/bin/env bash
# Summary: Submit the Flink job from a retained checkpoint; prints the job id.
# Usage: scripts/flink_restore.sh [latest|chk-N|PATH] [--mode exactly-once|at-least-once] [--backend compose|local]
#
# Says first from which offset of each partition the job will go on. Only complete checkpoints are
# taken: a folder without _metadata is not a checkpoint. Windows that were committed after an older
# checkpoint are written again when the job goes back to it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"

which=latest
if ((${#ARGS[@]} > 0)) && [[ "${ARGS[0]}" != --* ]]; then
  which="${ARGS[0]}"
  ARGS=("${ARGS[@]:1}")
  if [[ "${which}" == */* ]]; then
    which="$(path_in_service "${which}")"
  fi
fi
require_running kafka jobmanager
checkpoint="$(service_exec jobmanager python -m inspector.flink resolve "${which}")" || exit 2
newest="$(service_exec jobmanager python -m inspector.flink resolve latest)"
offsets="$(service_exec jobmanager python -m inspector.flink offsets "${checkpoint}")" || exit 2
say "restoring from $(path_on_host "${checkpoint}")"
say "the job goes on from these offsets of ${VISITS_TOPIC}, partition to offset: ${offsets}"
if [[ "${checkpoint}" != "${newest}" ]]; then
  say "note: $(basename "${newest}") is newer; windows committed since $(basename "${checkpoint}") will be written a second time"
fi
service_exec jobmanager python -m flink_job.submit --from "${checkpoint}" "${ARGS[@]}"
