#!/usr/bin/env bash
# Summary: A transaction that nobody ends holds every reader of committed records: see it, find it, end it.
# Usage: scripts/walkthroughs/06_hanging_transaction.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Works on a topic of its own, which is removed at the end.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 1 minute
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

readonly TOPIC=held_by_a_transaction
# The producer of faultline/faults/leave_open.py: its transactional id, and the records that it writes.
readonly ID=foreign WRITTEN=16

kafka() {
  run scripts/exec.sh kafka "$1" --bootstrap-server "${BROKER}" "${@:2}"
}

# records_read [LEVEL]: what a reader of this isolation level gets; of committed records, without one.
records_read() {
  scripts/exec.sh kafka kafka-console-consumer.sh --bootstrap-server "${BROKER}" --topic "${TOPIC}" \
    --isolation-level "${1:-read_committed}" --from-beginning --timeout-ms 10000 2>/dev/null || true
}

readers_get_some() {
  [[ -n "$(records_read)" ]]
}

remove_topic() {
  scripts/exec.sh kafka kafka-topics.sh --bootstrap-server "${BROKER}" --delete --if-exists --topic "${TOPIC}"
}

begin "$@"
CLEAN_UP=remove_topic

step "leave a transaction open: a producer ends before it commits, and does not tell the broker"
remove_topic >/dev/null
kafka kafka-topics.sh --create --topic "${TOPIC}" --partitions 1 2>/dev/null | indent
say "   its transaction may stay open for an hour"
run scripts/exec.sh generator python -m faultline.faults.leave_open "${TOPIC}" 3600000

step "write behind it, without a transaction"
for number in 1 2 3; do echo "record ${number}"; done |
  scripts/exec.sh kafka kafka-console-producer.sh --bootstrap-server "${BROKER}" --topic "${TOPIC}" >/dev/null
expect "the records are in the topic, and a reader of committed records gets none of them"
kafka kafka-get-offsets.sh --topic "${TOPIC}" | indent
records_read | indent
fact "records that a reader of all records gets" "$(records_read read_uncommitted | wc -l | tr -d ' ')" $((WRITTEN + 3))
fact "records that a reader of committed records gets" "$(records_read | wc -l | tr -d ' ')" 0
prove "An open transaction holds back what is written after it in its partition, by any producer."

step "find it"
expect "a transaction in state Ongoing, and the offset at which it begins"
kafka kafka-transactions.sh list | grep -E "State|${ID}" | indent
kafka kafka-transactions.sh describe --transactional-id "${ID}" | indent
kafka kafka-transactions.sh describe-producers --topic "${TOPIC}" --partition 0 | indent

step "end it"
say "   an abort discards the records. Do this to a Flink job's transaction only if the job is never restored:"
say "   a checkpoint may have promised to commit it"
kafka kafka-transactions.sh forceTerminateTransaction --transactionalId "${ID}" | indent
until_true 60 "the end of the transaction" readers_get_some
records_read | indent
fact "records that a reader of committed records gets" "$(records_read | grep -c '^record')" 3
prove "Once it is aborted, readers get what was written behind it."

step "remove the topic"
say "   the job of this stack lets its transactions stay open for ${FLINK_TRANSACTION_TIMEOUT_MS} ms: a job that is killed and"
say "   never restored would hold its readers that long"
kafka kafka-topics.sh --delete --topic "${TOPIC}" | indent
finish
