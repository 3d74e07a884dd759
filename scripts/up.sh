#!/usr/bin/env bash
# Summary: Bring the whole stack up: Kafka, generator, Spark synchronizer, Flink cluster, Flink job.
# Usage: scripts/up.sh [--backend compose|local]
#
# The Flink job goes on from its newest retained checkpoint, the synchronizer from its own.
# GENERATOR_ARGS and SPARK_ARGS hold further flags of the two, as words.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
((${#ARGS[@]} == 0)) || die "unknown argument '${ARGS[0]}'; see --help"

if stack_is_up; then
  say "the stack is up already, on backend ${BACKEND}; scripts/status.sh shows it, scripts/down.sh stops it"
  exit 0
fi
say "backend: ${BACKEND} (${BACKEND_REASON})"

# An interrupted or failed start leaves nothing running.
begun=false started=false
roll_back() {
  [[ "${begun}" == false || "${started}" == true ]] && return
  trap '' INT TERM
  say "the stack did not come up; stopping what was started"
  stack_down || true
}
trap roll_back EXIT
trap 'exit 130' INT TERM

stack_build
read -r -a generator_flags <<<"${GENERATOR_ARGS:-}"
check_flags generator "${generator_flags[@]}"
read -r -a spark_flags <<<"${SPARK_ARGS:-}"
check_flags spark "${spark_flags[@]}"
begun=true
stack_up >&2
started=true
say "the stack is up: Flink UI http://${BIND_ADDRESS}:${FLINK_UI_PORT}  Spark UI http://${BIND_ADDRESS}:${SPARK_UI_PORT}  Kafka ${BIND_ADDRESS}:${KAFKA_PORT}"
say "next: scripts/status.sh, scripts/verdict.sh flink, scripts/down.sh"
