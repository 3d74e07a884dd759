#!/usr/bin/env bash
# Summary: Measure the verdict on faultless outputs of many visits: seconds and memory, reading and judging apart.
# Usage: benchmarks/verdict.sh [VISITS [VISITS_PER_ID [VALUE_BYTES]]]
#
# 1000000 visits, 4 for each visit_id and 440 bytes a value by default; VISITS_PER_ID=1 makes a window for each visit. Local
# backend, a broker of its own in a temporary folder, on the stack's ports. No job runs: benchmarks/faultless.py writes
# what faultless ones would have.
set -euo pipefail
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
STACK_HOME="$(mktemp --directory --tmpdir faultline-verdict.XXXXXX)"
export STACK_HOME
source "${folder}/../scripts/lib/stack.sh"
load_stack --backend local "$@"
readonly VISITS="${ARGS[0]:-1000000}" VISITS_PER_ID="${ARGS[1]:-4}" VALUE_BYTES="${ARGS[2]:-440}"
for number in "${VISITS}" "${VISITS_PER_ID}" "${VALUE_BYTES}"; do
  [[ "${number}" =~ ^[1-9][0-9]*$ ]] || die "'${number}' is not a whole number; see --help"
done

clean_up() {
  trap '' INT TERM
  stack_down --wipe >/dev/null 2>&1 || true
  rm --recursive --force "${STACK_HOME}"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

stack_build
check_ports "${LOCAL_PORTS[@]}"
record_backend
service_start kafka
wait_for 60 "the broker" port_taken "${KAFKA_PORT}"
"${ROOT}/services/topics.sh"
say "writing ${VISITS} visits and what faultless pipelines make of them ..."
written="$(tool_run python -m benchmarks.faultless "${VISITS}" "${VISITS_PER_ID}" "${VALUE_BYTES}")"
read -r visits windows lines <<<"${written}"

row() {
  printf '%-30s %10s %10s %8s %8s %8s %6s  %s\n' "$@"
}
row "${visits} visits" expected observed seconds reading judging MiB verdict
declare -A observed
for pipeline in flink spark; do
  say "judging ${pipeline} ..."
  read -r -a judged <<<"$(tool_run python -m benchmarks.judge "${pipeline}")"
  row "verdict ${pipeline}" "${judged[@]:1}" "${judged[0]}"
  [[ "${judged[0]}" == holds ]] || die "the verdict on ${pipeline} is ${judged[0]}: this is no measurement" 1
  observed["${pipeline}"]="${judged[2]}"
done
[[ "${observed[flink]}" == "${windows}" && "${observed[spark]}" == "${lines}" ]] ||
  die "written were ${windows} windows and ${lines} lines: this is no measurement" 1
