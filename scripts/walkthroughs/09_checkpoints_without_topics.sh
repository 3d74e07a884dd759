#!/usr/bin/env bash
# Summary: The topics are gone and the checkpoints are not, as after docker-compose down --volumes: what restarts?
# Usage: scripts/walkthroughs/09_checkpoints_without_topics.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack; its topics, checkpoints and outputs are removed at the end
# Takes: 2 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

spark_has_ended() {
  [[ "$(scripts/status.sh --json | state_in spark)" == exited ]]
}

generator_has_ended() {
  [[ "$(scripts/status.sh --json | state_in generator)" == exited ]]
}

begin "$@"
checkpoint="${DATA_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}"

step "let both pipelines commit, then stop them"
wait_for_checkpoints 2 >/dev/null
run scripts/generator_stop.sh
# More than the new topics will have when the pipelines start on them.
run scripts/generator_start.sh --rate 0 --total 5000
until_true 120 "the end of the generator" generator_has_ended
settle
run scripts/spark_stop.sh
run scripts/flink_cancel.sh >/dev/null

step "remove the topics and keep the checkpoints"
say "   docker-compose down --volumes does the same: the broker's volume goes, the folders of the checkpoints stay"
spoil "offsets in the checkpoints are of topics that no longer exist"
topics="${VISITS_TOPIC}|${VISIT_WINDOWS_TOPIC}|${VISITS_LATE_TOPIC}|${VISITS_REJECTED_TOPIC}|${CLASSIC_WINDOWS_TOPIC}|${CLASSIC_LATE_TOPIC}|${VISIT_PAGES_TOPIC}"
run scripts/exec.sh kafka kafka-topics.sh --bootstrap-server "${BROKER}" --delete --topic "${topics}"

step "make the topics again, and start both pipelines from their checkpoints"
expect "Spark stops, since its offsets are beyond the end of the topic; Flink begins at the earliest offset and runs on"
run scripts/exec.sh generator python -m faultline.services.kafka.topics
run scripts/generator_start.sh
run scripts/flink_restore.sh latest >/dev/null
run scripts/spark_start.sh
until_true 120 "the end of the synchronizer" spark_has_ended
why="$(scripts/logs.sh spark 200 | grep -o 'Some data may have been lost.*' | tail -n 1 || true)"
fact "Spark says" "${why:0:28}" "Some data may have been lost"
found="$({ run scripts/inspect.sh "${checkpoint}" --last 1 2>/dev/null || true; } | { grep 'created again' || true; })"
indent <<<"${found}"
fact_is "lines of the inspector that say so" "$(grep -c 'created again' <<<"${found}" || true)" -gt 0
judge spark
fact "verdict on spark" "$(judged outcome)" unknown
say "   $(judged reason)"
fact "the Flink job" "$(scripts/flink_status.sh | field state)" RUNNING
prove "Without its topic a checkpoint is worthless: Spark stops, the inspector and the verdict say why, and Flink runs on."

step "recover: checkpoints and topics go together"
run scripts/reset.sh
run scripts/up.sh
scripts/start.sh generator
wait_for_checkpoints 2 >/dev/null
settle
judge all
fact "verdict on both" "$(judged outcome)" holds
prove "Started clean, both pipelines are right again. Use scripts/down.sh --wipe, which removes both, or neither."
SPOILT=false
finish
