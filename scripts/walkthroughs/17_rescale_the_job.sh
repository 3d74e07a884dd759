#!/usr/bin/env bash
# Summary: Double the tasks of the Flink job from a retained checkpoint, and go back to the old number from a savepoint.
# Usage: scripts/walkthroughs/17_rescale_the_job.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 3 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

readonly RATE=200

# restore PARALLELISM CHECKPOINT: restores the job with so many tasks of each step.
restore() {
  run env "STACK_FLINK_PARALLELISM=$1" scripts/flink_restore.sh "$2" >/dev/null
}

tasks() {
  scripts/flink_status.sh | field tasks
}

begin "$@"

step "load the job: ${RATE} visits a second"
run scripts/generator_stop.sh
run scripts/generator_start.sh --rate "${RATE}"
wait_for_checkpoints 2 >/dev/null
before="$(tasks)"
say "   parallelism ${FLINK_PARALLELISM}, ${before} tasks"

step "cancel it, and restore its newest checkpoint with parallelism $((2 * FLINK_PARALLELISM))"
expect "state belongs to key groups, offsets to partitions: both are redistributed"
say "   the topic has ${TOPIC_PARTITIONS} partitions; a task without one reads nothing, and keeps its share of the windows"
run scripts/flink_cancel.sh >/dev/null
promised="$(offsets_in latest)"
restore $((2 * FLINK_PARALLELISM)) latest
fact "tasks of the job" "$(tasks)" $((2 * before))
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
wait_for_checkpoints 2 >/dev/null
prove "A retained checkpoint can be restored with another parallelism."

step "stop it with a savepoint, and restore that with parallelism ${FLINK_PARALLELISM}"
expect "the last windows are committed before the job ends; it reads on where the savepoint ends"
savepoint="$(stop_with_savepoint)"
promised="$(offsets_in "${savepoint}")"
restore "${FLINK_PARALLELISM}" "${savepoint}"
fact "tasks of the job" "$(tasks)" "${before}"
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
wait_for_checkpoints 2 >/dev/null
prove "The same holds for a savepoint, with which the job is stopped."

step "judge: was a window lost, or written twice?"
settle
judge flink
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
prove "Rescaled twice under load, the job has written every window once."
finish
