#!/usr/bin/env bash
# Summary: Add partitions to the topic while visits come: who finds them, when, and what happens to order.
# Usage: scripts/walkthroughs/18_more_partitions.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack; its topics, checkpoints and outputs are removed at the end
# Takes: 3 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

# flink_reads: from how many partitions the job reads, by its newest checkpoint.
flink_reads() {
  offsets_in latest | tr ',' '\n' | wc -l | tr -d ' '
}

flink_reads_all() {
  (($(flink_reads) == PARTITIONS))
}

# spark_reads: from how many partitions the newest committed batch has read.
spark_reads() {
  scripts/inspect.sh "${DATA_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}" --json 2>/dev/null |
    field steps state=committed sources 0 partitions | wc -l | tr -d ' '
}

spark_reads_all() {
  (($(spark_reads) == PARTITIONS))
}

begin "$@"
readonly PARTITIONS=$((TOPIC_PARTITIONS * 4))

step "go from ${TOPIC_PARTITIONS} to ${PARTITIONS} partitions, while visits come"
wait_for_checkpoints 2 >/dev/null
running="$(engines)"
spoil "no partition can be removed"
run scripts/exec.sh kafka kafka-topics.sh --bootstrap-server "${BROKER}" --alter --topic "${VISITS_TOPIC}" --partitions "${PARTITIONS}"
say "   a running producer asks for partitions every 5 minutes, a new one at once"
run scripts/generator_stop.sh
run scripts/generator_start.sh

step "wait until both engines read from all of them"
expect "Spark asks the broker for partitions at each batch, Flink every 60 s"
until_true 60 "a batch from ${PARTITIONS} partitions" spark_reads_all
fact "partitions in Spark's newest batch" "$(spark_reads)" "${PARTITIONS}"
until_true 180 "a checkpoint with ${PARTITIONS} partitions" flink_reads_all
fact "partitions in Flink's newest checkpoint" "$(flink_reads)" "${PARTITIONS}"
fact "both engines" "$(engines)" "${running}"
prove "No engine needs a restart for new partitions; each finds them by itself."

step "judge both pipelines"
expect "a visit whose key has moved may come behind the watermark: it is late, and set aside, not lost"
settle
judge flink
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
say "   visits that came too late for their window: $(judged late)"
judge spark
fact "verdict on spark" "$(judged outcome)" holds
fact "records lost" "$(judged lost)" 0
fact "records written twice" "$(judged duplicated)" 0
prove "Nothing is lost or repeated while a topic gets more partitions."
finish
