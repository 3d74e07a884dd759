#!/usr/bin/env bash
# Summary: The windowing job as tutorials write it, restored from a checkpoint: a window that was closed is written again.
# Usage: scripts/walkthroughs/08_classic_job.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack; its topics, checkpoints and outputs are removed at the end
# Takes: 3 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"
begin "$@"

step "submit flink_job/classic.py beside the job of this project"
expect "both read visits and count the same windows; the classic one writes to ${CLASSIC_WINDOWS_TOPIC}"
spoil "a visit that the generator has not sent will be in the source"
run scripts/flink_submit.sh --job classic >/dev/null
run scripts/flink_status.sh --job classic --wait-checkpoints 4 --wait-seconds 180 >/dev/null
settle
judge classic
fact "verdict on classic" "$(judged outcome)" holds
judge flink
late="$(judged late)"
prove "As long as it is not restored, the classic job is right."

step "cancel both jobs, and let a late visit arrive"
expect "its window has been written long ago: it is late for any job that remembers its watermark"
run scripts/flink_cancel.sh --job classic >/dev/null
run scripts/flink_cancel.sh >/dev/null
window="$(scripts/consume.sh "${CLASSIC_WINDOWS_TOPIC}" --last 1 | tail -n 1 | grep -o '{.*')"
visit_id="$(field visit_id <<<"${window}")"
say "   ${window}"
visit="{\"visit_id\": \"${visit_id}\", \"event_time\": \"$(field first_event_time <<<"${window}")\", \"user_id\": \"u\", \"page\": \"/late\"}"
printf '%s|%s\n' "${visit_id}" "${visit}" | run scripts/exec.sh kafka kafka-console-producer.sh \
  --bootstrap-server "${BROKER}" --topic "${VISITS_TOPIC}" --reader-property parse.key=true --reader-property key.separator='|'

step "restore both from their newest checkpoints, and let more visits arrive"
expect "the DataStream API saves no watermark in a checkpoint: the classic job begins without one, and opens the window again"
run scripts/flink_restore.sh latest --job classic >/dev/null
run scripts/flink_restore.sh latest >/dev/null
run scripts/generator_start.sh
arrived="$(record_count "${VISITS_TOPIC}")"
until_true 120 "100 more visits" has_arrived "${VISITS_TOPIC}" $((arrived + 100))

step "judge both"
settle
judge classic
say "   classic: lost $(judged lost), written twice $(judged duplicated), unexpected $(judged unexpected)"
fact_is "windows of the classic job written twice" "$(judged duplicated)" -gt 0
judge flink
fact "windows of this project's job written twice" "$(judged duplicated)" 0
fact "its windows lost" "$(judged lost)" 0
fact "its late visits, ${late} before" "$(judged late)" $((late + 1))
prove "The classic job forgets at a restore what was late; the one of this project keeps its clock in the checkpoint."
finish
