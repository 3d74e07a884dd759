#!/usr/bin/env bash
# Summary: Run the synchronizer on one executor, then on one for each worker of Spark's cluster, under load.
# Usage: scripts/walkthroughs/19_more_executors.sh [--pause] [--backend compose|local] [--profile cluster]
#
# From 1 to 3 executors on a stack that came up with STACK_SPARK_WORKERS=3 scripts/up.sh --profile cluster
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack, with Spark workers: --profile cluster, or STACK_SPARK_WORKERS=2 or 3
# Takes: 2 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

readonly RATE=200

# executors: how many the query has, by Spark's own page; the driver is none.
executors() {
  spark_application executors | field '*' id | grep -v -c '^driver$' || true
}

all_executors() {
  (($(executors) == $1))
}

# newest_batch: the newest committed batch, -1 before the first. Status exits with 1 while a service is stopped.
newest_batch() {
  { scripts/status.sh --json 2>/dev/null || true; } | field synchronizer batch 2>/dev/null || echo -1
}

batch_came() {
  (($(newest_batch) > $1))
}

# start_with N: starts the synchronizer with so many executors, and waits for two batches.
start_with() {
  local batch
  run scripts/spark_stop.sh
  batch="$(newest_batch)"
  run scripts/spark_start.sh --executors "$1"
  until_true 120 "$1 executors" all_executors "$1"
  until_true 120 "two batches" batch_came $((batch + 1))
  fact "executors, with --executors $1" "$(executors)" "$1"
}

begin "$@"
((SPARK_WORKERS > 1)) || die "this stack has ${SPARK_WORKERS} Spark workers and needs two; run again with STACK_SPARK_WORKERS=2"

step "load the synchronizer: ${RATE} visits a second"
run scripts/generator_stop.sh
run scripts/generator_start.sh --rate "${RATE}"

step "run it on one executor"
start_with 1
prove "A query runs on as many cores as it asks for."

step "stop it, and run it on ${SPARK_WORKERS} executors"
expect "the checkpoint knows nothing of executors: the next batch begins where the last one ended"
start_with "${SPARK_WORKERS}"
prove "Each start sets the number of executors; the checkpoint does not."

step "judge: was a record lost, or written twice?"
settle
judge spark
fact "verdict on spark" "$(judged outcome)" holds
fact "records lost" "$(judged lost)" 0
fact "records written twice" "$(judged duplicated)" 0
prove "On one executor and on several, each record is written once."
finish
