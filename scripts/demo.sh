#!/usr/bin/env bash
# Summary: Set up everything, break both pipelines, restore them, and judge them by their records.
# Usage: scripts/demo.sh [--pause] [--backend compose|local]
#
# --pause waits for Enter before each step, for a class.
# Exit codes: 0 both verdicts hold, 1 one is violated, 2 one is unknown or a step failed.
# The stack stays up afterwards; the last line shows how to stop it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/walkthrough.sh"
parse_walkthrough "$@"

readonly QUERY="${SPARK_QUERY_NAME}"
readonly SPARK_CHECKPOINT="${HOME_FOLDER}/checkpoints/spark/${QUERY}"
readonly VISITS_MEANWHILE=40

started_here=false judged=false
clean_up() {
  local status=$?
  trap '' INT TERM
  if [[ "${judged}" == false ]]; then
    say ""
    say "the walkthrough ended early (exit code ${status})"
    if [[ "${started_here}" == true ]]; then
      say "stopping what it started; checkpoints and outputs stay, scripts/down.sh --wipe removes them"
      scripts/down.sh || true
    fi
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

visits_arrived() {
  (($(record_count "${VISITS_TOPIC}") >= $1))
}

window_is_committed() {
  [[ -n "$(scripts/exec.sh kafka kafka-console-consumer.sh --bootstrap-server "${BROKER_INSIDE}" \
    --topic "${VISIT_WINDOWS_TOPIC}" --isolation-level read_committed --from-beginning --max-messages 1 --timeout-ms 3000)" ]]
}

batch_is_held() {
  [[ -s "${SPARK_CHECKPOINT}.held" ]]
}

spark_says() {
  scripts/logs.sh spark 200 | grep -F -q -e "$1"
}

step "start the stack"
scripts/status.sh >/dev/null 2>&1 || started_here=true
# Running services are left alone; the job is submitted when it is missing.
run scripts/up.sh
scripts/start.sh generator
BROKER_INSIDE="$(broker_inside)"

step "wait for the second checkpoint of the Flink job, and for its first windows"
wanted=$(($(scripts/flink_status.sh | field checkpoints_completed) + 2))
status="$(scripts/flink_status.sh --wait-checkpoints "${wanted}" --wait-seconds 180)"
job_id="$(field job_id <<<"${status}")"
say "   job ${job_id} is $(field state <<<"${status}"), newest checkpoint chk-$(field latest_checkpoint <<<"${status}")"
until_true 120 "a committed window" window_is_committed

step "look at its externalized checkpoints: one folder per checkpoint, complete once it has _metadata"
(cd "${HOME_FOLDER}" && find "checkpoints/flink/${job_id}" -maxdepth 2 | sort -V) | indent
run scripts/flink_checkpoints.sh | tail -n 3 | indent

step "cancel the job: no savepoint, its checkpoints are retained"
run scripts/flink_cancel.sh >/dev/null

step "read the last windows that it committed"
run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --last 2 | indent

step "let visits arrive while no job runs"
arrived="$(record_count "${VISITS_TOPIC}")"
until_true 120 "${VISITS_MEANWHILE} more visits" visits_arrived $((arrived + VISITS_MEANWHILE))
say "   the topic had ${arrived} visits, now it has $(record_count "${VISITS_TOPIC}")"

step "restore the job from its newest checkpoint"
checkpoint="$(scripts/exec.sh jobmanager python -m inspector.flink resolve latest)"
promised="$(scripts/exec.sh jobmanager python -m inspector.flink offsets "${checkpoint}" | json_offsets)"
restored_id="$(run scripts/flink_restore.sh "$(basename "${checkpoint}")")"
say "   job ${restored_id} runs, restored from $(scripts/flink_status.sh | field restored_from)"

step "prove that reading starts at the checkpoint's offsets, not at the earliest"
# Flink logs the starting offset of each partition.
read_from="$(scripts/logs.sh taskmanager 100000 |
  grep -E -o "Partition: ${VISITS_TOPIC}-[0-9]+, StartingOffset: -?[0-9]+" |
  tail -n "${TOPIC_PARTITIONS}" | sed -E 's/.*-([0-9]+), StartingOffset: /\1 /' | sort -n)"
awk '{ print "partition " $1 ": the reader started at offset " $2 }' <<<"${read_from}" | indent
if [[ "${read_from}" != "${promised}" ]]; then
  die "the job had to continue from these offsets, partition and offset: ${promised//$'\n'/, }; it started elsewhere"
fi
say "   the same as in $(basename "${checkpoint}"); nothing before them is read again"

step "kill -9 the Spark synchronizer inside a batch"
run scripts/spark_stop.sh
say "   to hit that moment, the next batch is held between its offsets file and its commit file"
run scripts/spark_start.sh --hold-batch next
until_true 180 "a batch held before its commit" batch_is_held
batch="$(<"${SPARK_CHECKPOINT}.held")"
planned="$(tail -n 1 "${SPARK_CHECKPOINT}/offsets/${batch}")"
say "   batch ${batch} is planned: offsets/${batch} has ${planned}"
[[ ! -e "${SPARK_CHECKPOINT}/commits/${batch}" ]] || die "batch ${batch} is already committed; it was not held"
say "   and not committed: commits/${batch} does not exist"
run scripts/kill.sh spark

step "start it again: which batch does it run?"
run scripts/spark_start.sh
until_true 180 "batch ${batch} run again" spark_says "batch ${batch} (re-run"
scripts/logs.sh spark 200 | grep -F "batch ${batch} (re-run" | tail -n 1 | indent
[[ "$(tail -n 1 "${SPARK_CHECKPOINT}/offsets/${batch}")" == "${planned}" ]] ||
  die "offsets/${batch} changed: the batch did not run again with its old range"
say "   the range in offsets/${batch} is the same as before the kill"

step "stop the generator, close the windows that are open, and let both pipelines commit everything"
run scripts/generator_stop.sh
run scripts/settle.sh --wait 180 | indent

step "judge both pipelines by their records"
verdict=0
run scripts/verdict.sh all || verdict=$?
judged=true

say ""
say "   output ${HOME_FOLDER}/output/${QUERY}"
say "the stack stays up; stop it with: scripts/down.sh"
exit "${verdict}"
