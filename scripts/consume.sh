#!/usr/bin/env bash
# Summary: Read a topic with Kafka's console consumer; only committed records unless told otherwise.
# Usage: scripts/consume.sh TOPIC [--from-beginning] [--last N] [--uncommitted] [CONSUMER FLAG...] [--backend compose|local]
#
# --last N       print the last N records of each partition and end
# --uncommitted  read the topic to its present end and say of each record whether a transaction
#                has committed it; `uncommitted` stands for one still open or aborted
# Other flags go to kafka-console-consumer.sh (--max-messages, --timeout-ms, --partition, ...).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
((${#ARGS[@]} > 0)) || die "which topic? one of: ${VISITS_TOPIC} ${VISIT_WINDOWS_TOPIC} ${VISITS_LATE_TOPIC} ${VISITS_REJECTED_TOPIC}"
topic="${ARGS[0]}"
in_list "${topic}" "${VISITS_TOPIC}" "${VISIT_WINDOWS_TOPIC}" "${VISITS_LATE_TOPIC}" "${VISITS_REJECTED_TOPIC}" ||
  die "no topic of the stack is called '${topic}'; the topics are: ${VISITS_TOPIC} ${VISIT_WINDOWS_TOPIC} ${VISITS_LATE_TOPIC} ${VISITS_REJECTED_TOPIC}"
require_running kafka

# consume ISOLATION FLAG...
consume() {
  service_exec kafka kafka-console-consumer.sh --bootstrap-server "${KAFKA_SERVICE_ADDRESS}" \
    --topic "${topic}" --isolation-level "$@"
}

# Partition and offset of each record, to tell the two readings apart.
readonly POSITIONS=(--formatter-property print.partition=true --formatter-property print.offset=true)
# The consumer ends when nothing has come for this long: the topic has been read to its end.
readonly END_OF_TOPIC=(--timeout-ms 3000)

last="" uncommitted=false flags=()
set -- "${ARGS[@]:1}"
while (($#)); do
  case "$1" in
    --last)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || die "--last needs a number of records"
      last="$2"
      shift 2
      ;;
    --uncommitted)
      uncommitted=true
      shift
      ;;
    *)
      flags+=("$1")
      shift
      ;;
  esac
done

if [[ "${uncommitted}" == true ]]; then
  committed="$(mktemp)"
  trap 'rm --force "${committed}"' EXIT
  consume read_committed --from-beginning "${END_OF_TOPIC[@]}" "${POSITIONS[@]}" "${flags[@]}" >"${committed}" 2>/dev/null
  consume read_uncommitted --from-beginning "${END_OF_TOPIC[@]}" "${POSITIONS[@]}" "${flags[@]}" 2>/dev/null |
    awk -F '\t' -v seen="${committed}" '
      BEGIN { while ((getline line < seen) > 0) { split(line, part, "\t"); known[part[1] part[2]] = 1 } }
      { printf "%-11s\t%s\n", (($1 $2) in known) ? "committed" : "uncommitted", $0 }'
elif [[ -n "${last}" ]]; then
  consume read_committed --from-beginning "${END_OF_TOPIC[@]}" "${POSITIONS[@]}" "${flags[@]}" 2>/dev/null |
    awk -F '\t' -v last="${last}" '
      { count[$1]++; line[$1, count[$1]] = $0 }
      END { for (p in count) for (i = (count[p] > last ? count[p] - last + 1 : 1); i <= count[p]; i++) print line[p, i] }'
else
  consume read_committed "${flags[@]}"
fi
