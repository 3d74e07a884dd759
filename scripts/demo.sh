#!/usr/bin/env bash
# Summary: Set up everything, break both pipelines, restore them, and judge them by their records.
# Usage: scripts/demo.sh [--pause] [--backend compose|local] [--profile cluster]
#
# The first of the walkthroughs; scripts/walkthroughs.sh lists all. --pause waits for Enter before each step, for a class.
# Exit codes: 0 all verdicts hold and every sentence is proven, 1 one is not, 2 one is unknown or a step failed.
# The stack stays up afterwards; the last line shows how to stop it.
#
# Needs: the stack
# Takes: 2 minutes; the first time 2 to 5 more, to fetch everything
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/lib/walkthrough.sh"

readonly VISITS_MEANWHILE=40

window_is_committed() {
  [[ -n "$(scripts/exec.sh kafka kafka-console-consumer.sh --bootstrap-server "${BROKER}" \
    --topic "${VISIT_WINDOWS_TOPIC}" --isolation-level read_committed --from-beginning --max-messages 1 --timeout-ms 3000)" ]]
}

begin "$@"
spark_checkpoint="${DATA_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}"
mark="${HOME_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}.held"

step "wait until the Flink job has completed two more checkpoints and committed its first windows"
status="$(wait_for_checkpoints 2)"
job_id="$(field job_id <<<"${status}")"
say "   job ${job_id} is $(field state <<<"${status}"), newest checkpoint chk-$(field latest_checkpoint <<<"${status}")"
until_true 120 "a committed window" window_is_committed

step "look at its externalized checkpoints: one folder per checkpoint, complete once it has _metadata"
run scripts/files.sh "${DATA_FOLDER}/checkpoints/flink/${job_id}" | indent
run scripts/flink_checkpoints.sh | tail -n 3 | indent

step "cancel the job: no savepoint, its checkpoints are retained"
run scripts/flink_cancel.sh >/dev/null

step "read the last windows that it committed"
run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --last 2 | indent

step "let visits arrive while no job runs"
arrived="$(record_count "${VISITS_TOPIC}")"
until_true 120 "${VISITS_MEANWHILE} more visits" has_arrived "${VISITS_TOPIC}" $((arrived + VISITS_MEANWHILE))
say "   the topic had ${arrived} visits, now it has $(record_count "${VISITS_TOPIC}")"

step "restore the job from its newest checkpoint"
expect "it reads on from the checkpoint's offsets, not from the earliest"
promised="$(offsets_in latest)"
restored_id="$(run scripts/flink_restore.sh latest)"
say "   job ${restored_id} runs, restored from $(scripts/flink_status.sh | field restored_from)"
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
prove "A restored job reads on from the offsets in its checkpoint."

step "kill -9 the Spark synchronizer inside a batch"
run scripts/spark_stop.sh
HELD=true
say "   to hit that moment, the next batch is held between its offsets file and its commit file"
run scripts/spark_start.sh --hold-batch next
until_true 180 "a batch held before its commit" test -s "${mark}"
batch="$(<"${mark}")"
planned="$(scripts/files.sh "${spark_checkpoint}/offsets/${batch}" | tail -n 1)"
say "   batch ${batch} is planned: offsets/${batch} has ${planned}"
! committed "${spark_checkpoint}" "${batch}" || die "batch ${batch} is already committed; it was not held"
say "   and not committed: commits/${batch} does not exist"
run scripts/kill.sh spark
HELD=false
promised="$(range_promised "${spark_checkpoint}")"
say "   a restart reads again, by scripts/inspect.sh ${spark_checkpoint}: ${promised}"

step "start it again: which batch does it run?"
expect "batch ${batch} (re-run): ${promised}"
run scripts/spark_start.sh
until_true 180 "batch ${batch} run again" spark_says "batch ${batch} (re-run"
scripts/logs.sh spark 200 | grep -F "batch ${batch} (re-run" | tail -n 1 | indent
fact "batch ${batch} has read again, by the synchronizer's log" "$(range_rerun "${batch}")" "${promised}"
prove "A batch that was planned and not committed runs again with its old range."

step "stop the generator, close the windows that are open, and let both pipelines commit everything"
settle

step "judge both pipelines by their records"
verdict=0
run scripts/verdict.sh all || verdict=$?

say ""
say "   output ${DATA_FOLDER}/output/${SPARK_QUERY_NAME}"
[[ "${GENERATOR}" == running ]] || say "next: scripts/generator_start.sh lets visits arrive again"
port="$(scripts/exec.sh kafka python3 -m faultline.print_setting PAGE_PORT)"
say "next: open http://127.0.0.1:${port}, and break the stack: scripts/kill.sh taskmanager"
finish "${verdict}"
