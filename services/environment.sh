# shellcheck shell=bash
# Sourced by every service and script: the settings of .env, and where things are.
# A variable that is already set wins, so one clone can run several stacks.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export ROOT

# Exports the KEY=VALUE lines of .env that the environment does not have yet.
load_settings() {
  local line name
  while IFS= read -r line || [[ -n "${line}" ]]; do
    if [[ "${line}" =~ ^([A-Z][A-Z0-9_]*)=(.*)$ ]]; then
      name="${BASH_REMATCH[1]}"
      if [[ -z "${!name:-}" ]]; then
        export "${name}=${BASH_REMATCH[2]}"
      fi
    fi
  done <"${ROOT}/.env"
}
load_settings

# Virtual environments and jars: fetched once, shared by all stacks of this clone.
export ARTIFACTS="${ARTIFACTS:-${ROOT}/.artifacts}"
# What one stack writes: checkpoints/, output/, ledger/ and its run state.
export STACK_HOME="${STACK_HOME:-${ROOT}}"
export STACK_STATE="${STACK_STATE:-${STACK_HOME}/.stack}"
export KAFKA_BOOTSTRAP="${KAFKA_BOOTSTRAP:-${BIND_ADDRESS}:${KAFKA_PORT}}"
export JOBMANAGER_HOST="${JOBMANAGER_HOST:-${BIND_ADDRESS}}"
export FLINK_REST="${FLINK_REST:-http://${JOBMANAGER_HOST}:${FLINK_UI_PORT}}"
export PYTHONPATH="${ROOT}${PYTHONPATH:+:${PYTHONPATH}}"
# UTC everywhere: engines and tools format times in the zone of their process.
export TZ=UTC

# In containers: whoever started the stack may remove what its services wrote.
if [[ -n "${STACK_UMASK:-}" ]]; then
  umask "${STACK_UMASK}"
fi
export PATH="${ROOT}/broker/bin:${PATH}"
