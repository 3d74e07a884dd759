# shellcheck shell=bash
# Sourced by every service: the settings of .env, and the paths.
# A variable STACK_KAFKA_PORT wins over that line of .env; the shell's variable here is KAFKA_PORT.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

# Sets the KEY=VALUE lines of .env, and then those of the profile, as variables of this shell.
load_settings() {
  load_file "${ROOT}/.env"
  # A container has no file of the profile, and does not need it: its values arrive as STACK_ variables.
  [[ -z "${PROFILE:-}" || ! -f "${ROOT}/.env.${PROFILE}" ]] || load_file "${ROOT}/.env.${PROFILE}"
}

# load_file FILE: sets its KEY=VALUE lines.
load_file() {
  local line name chosen
  while IFS= read -r line || [[ -n "${line}" ]]; do
    if [[ "${line}" =~ ^([A-Z][A-Z0-9_]*)=(.*)$ ]]; then
      name="${BASH_REMATCH[1]#STACK_}"
      # The scripts that a walkthrough calls also read PORT_OFFSET without the prefix; UID is bash's own, and read-only.
      [[ "${name}" != PORT_OFFSET && "${name}" != UID ]] || continue
      chosen="STACK_${name}"
      printf -v "${name}" '%s' "${!chosen:-${BASH_REMATCH[2]}}"
    fi
  done <"$1"
}
load_settings

# Virtual environments and jars: fetched once, shared by all stacks of this clone.
# shellcheck disable=SC2034  # the services read it
ARTIFACTS="${STACK_ARTIFACTS:-${ROOT}/.artifacts}"
export PYTHONPATH="${ROOT}${PYTHONPATH:+:${PYTHONPATH}}"
# UTC everywhere: engines and tools format times in the zone of their process.
export TZ=UTC
