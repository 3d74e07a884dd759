#!/usr/bin/env bash
# Summary: Set up all that is needed, break both pipelines, restore them, and judge them by their records.
# Usage: scripts/demo.sh [--pause] [--backend compose|local]
#
# --pause waits for Enter before each step, for a class.
# Exit codes: 0 both verdicts hold, 1 one is violated, 2 one is unknown or a step failed.
# The stack stays up afterwards; the last line says how to stop it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib/walkthrough.sh"
load_stack "$@"
for argument in "${ARGS[@]}"; do
  [[ "${argument}" == --pause ]] || die "unknown argument '${argument}'; see --help"
  PAUSE=true
done
if [[ "${PAUSE}" == true && ! -t 0 ]]; then
  die "--pause waits for Enter, and there is no terminal to read it from"
fi

# The verbs that this calls act on the same backend.
export STACK_BACKEND="${BACKEND}"
readonly QUERY="${SPARK_QUERY_NAME}"
readonly SPARK_CHECKPOINT="${STACK_HOME}/checkpoints/spark/${QUERY}"
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
      stack_down || true
    fi
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

job_status() {
  service_exec jobmanager python -m flink_job.status "$@"
}

# field NAME: the value of a number or text in the JSON line on stdin.
field() {
  sed --quiet "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p"
}

visits_arrived() {
  (($(record_count "${VISITS_TOPIC}") >= $1))
}

window_is_committed() {
  [[ -n "$(service_exec kafka kafka-console-consumer.sh --bootstrap-server "${KAFKA_SERVICE_ADDRESS}" \
    --topic "${VISIT_WINDOWS_TOPIC}" --isolation-level read_committed --from-beginning --max-messages 1 --timeout-ms 3000)" ]]
}

batch_is_held() {
  [[ -s "${SPARK_CHECKPOINT}.held" ]]
}

spark_says() {
  service_logs spark 200 | grep --fixed-strings --quiet -- "$1"
}

step "bring the stack up"
if stack_is_up; then
  say "   it is up already, on backend ${BACKEND}"
  for service in "${SERVICES[@]}"; do
    service_start "${service}"
  done
  job_status >/dev/null 2>&1 || true
  if [[ "$(job_status 2>/dev/null | field state)" != RUNNING ]]; then
    run scripts/flink_restore.sh latest | indent
  fi
else
  started_here=true
  run scripts/up.sh
fi

step "wait for the second checkpoint of the Flink job, and for its first windows"
before="$(job_status)"
wanted=$(($(field checkpoints_completed <<<"${before}") + 2))
status="$(job_status --wait-checkpoints "${wanted}" --wait-seconds 180)"
job_id="$(field job_id <<<"${status}")"
say "   job ${job_id} is $(field state <<<"${status}"), newest checkpoint chk-$(field latest_checkpoint <<<"${status}")"

wait_for 120 "a committed window" window_is_committed

step "look at its externalized checkpoints: a folder a checkpoint, complete once it has _metadata"
(cd "${STACK_HOME}" && find "checkpoints/flink/${job_id}" -maxdepth 2 | sort --version-sort) | indent
run scripts/flink_checkpoints.sh | tail --lines 3 | indent

step "cancel the job: no savepoint, its checkpoints are retained"
run scripts/flink_cancel.sh >/dev/null

step "read the last windows that it committed"
run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --last 2 | indent

step "let visits arrive while no job runs"
arrived="$(record_count "${VISITS_TOPIC}")"
wait_for 120 "${VISITS_MEANWHILE} more visits" visits_arrived $((arrived + VISITS_MEANWHILE))
say "   the topic had ${arrived} visits, now it has $(record_count "${VISITS_TOPIC}")"

step "restore the job from its newest checkpoint"
checkpoint="$(service_exec jobmanager python -m inspector.flink resolve latest)"
promised="$(service_exec jobmanager python -m inspector.flink offsets "${checkpoint}" | json_offsets)"
restored_id="$(run scripts/flink_restore.sh "$(basename "${checkpoint}")")"
say "   job ${restored_id} runs, restored from $(job_status | field restored_from)"

step "prove that the first record read is the checkpoint's, not the earliest"
# Flink logs with which offset it handed each partition to its reader.
read_from="$(service_logs taskmanager 100000 |
  grep --only-matching --extended-regexp "Partition: ${VISITS_TOPIC}-[0-9]+, StartingOffset: -?[0-9]+" |
  tail --lines "${TOPIC_PARTITIONS}" | sed --regexp-extended 's/.*-([0-9]+), StartingOffset: /\1 /' | sort --numeric-sort)"
awk '{ print "partition " $1 ": the reader started at offset " $2 }' <<<"${read_from}" | indent
if [[ "${read_from}" != "${promised}" ]]; then
  die "the job was to go on from these offsets, partition and offset: ${promised//$'\n'/, }; it started elsewhere"
fi
say "   the same as in $(basename "${checkpoint}"); nothing before them is read again"

step "kill -9 the Spark synchronizer inside a batch"
run scripts/spark_stop.sh
say "   to hit the moment for sure, the next batch is held between its offsets file and its commit file"
run scripts/spark_start.sh --hold-batch next
wait_for 180 "a batch held before its commit" batch_is_held
batch="$(<"${SPARK_CHECKPOINT}.held")"
planned="$(tail --lines 1 "${SPARK_CHECKPOINT}/offsets/${batch}")"
say "   batch ${batch} is planned: offsets/${batch} says ${planned}"
[[ ! -e "${SPARK_CHECKPOINT}/commits/${batch}" ]] || die "batch ${batch} is committed already; it was not held"
say "   and not committed: there is no commits/${batch}"
run scripts/kill.sh spark

step "start it again: which batch does it run?"
run scripts/spark_start.sh
wait_for 180 "batch ${batch} run again" spark_says "batch ${batch} (re-run"
service_logs spark 200 | grep --fixed-strings "batch ${batch} (re-run" | tail --lines 1 | indent
[[ "$(tail --lines 1 "${SPARK_CHECKPOINT}/offsets/${batch}")" == "${planned}" ]] ||
  die "offsets/${batch} changed: the batch was not run again with the range it had"
say "   the range in offsets/${batch} is the one from before the kill"

step "stop the generator, close the windows that are open, and let both pipelines commit everything"
run scripts/generator_stop.sh
run scripts/settle.sh --wait 180 | indent

step "judge both pipelines by their records"
verdict=0
run scripts/verdict.sh all || verdict=$?
judged=true

say ""
say "Flink UI http://${BIND_ADDRESS}:${FLINK_UI_PORT}   Spark UI http://${BIND_ADDRESS}:${SPARK_UI_PORT}   output ${STACK_HOME}/output/${QUERY}"
say "the stack stays up on backend ${BACKEND}; stop it with: scripts/down.sh"
exit "${verdict}"
