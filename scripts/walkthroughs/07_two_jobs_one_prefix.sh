#!/usr/bin/env bash
# Summary: Run a second job with the same transactional ids: both fence each other off, and restart.
# Usage: scripts/walkthroughs/07_two_jobs_one_prefix.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack; its topics, checkpoints and outputs are removed at the end
# Takes: 2 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

# second MODULE: runs it for a job of another name.
second() {
  run scripts/exec.sh jobmanager env STACK_FLINK_JOB_NAME=second python -m "$@"
}

# taskmanager_logs: the lines of every TaskManager in the order of their times.
taskmanager_logs() {
  local name
  for name in $(taskmanagers); do
    scripts/logs.sh "${name}" 100000
  done | sort -s -k 1,1
}

fenced() {
  taskmanager_logs | grep -c -E 'ProducerFencedException|InvalidProducerEpochException' || true
}

# restarts: of the first job; restarts_of_second: of the second one, 0 before it runs.
restarts() {
  scripts/flink_status.sh | field restarts
}

restarts_of_second() {
  { second flink_job.status 2>/dev/null || true; } | { field restarts 2>/dev/null || echo 0; }
}

both_are_fenced() {
  (($(fenced) > before && $(restarts) > restarts_before && $(restarts_of_second) > 0))
}

# first_job_runs: whether all of its tasks run; TaskManagers that have died are started.
first_job_runs() {
  local status
  start_taskmanagers
  status="$(scripts/flink_status.sh)"
  (($(field running_tasks <<<"${status}") == $(field tasks <<<"${status}")))
}

begin "$@"

step "submit the job a second time"
expect "it is refused, since both would use the same transactional ids"
wait_for_checkpoints 2 >/dev/null
code=0
run scripts/flink_submit.sh || code=$?
fact "exit code of scripts/flink_submit.sh" "${code}" 2
prove "The scripts do not start the same job twice."

step "do it by hand, under another name"
expect "Kafka knows a producer by its transactional id: the newer one fences off the older one"
before="$(fenced)"
restarts_before="$(restarts)"
spoil "two jobs write the same windows"
second flink_job.submit >/dev/null || true
until_true 180 "a restart of both jobs" both_are_fenced
taskmanager_logs | grep -E -o '(ProducerFenced|InvalidProducerEpoch)Exception: .*' | sort -u | awk 'NR <= 3' | indent
fact_is "fenced producers in the log, ${before} before" "$(fenced)" -gt "${before}"
fact_is "restarts of the first job, ${restarts_before} before" "$(restarts)" -gt "${restarts_before}"
fact_is "restarts of the second job" "$(restarts_of_second)" -gt 0
prove "Two jobs with one transactional id prefix fence each other's producers off."

step "cancel the second job"
expect "the first one restarts from its last checkpoint; if the TaskManager has died, start it"
second flink_job.cancel >/dev/null || true
until_true 180 "all tasks of the first job" first_job_runs
wait_for_checkpoints 2 >/dev/null
settle
judge flink
say "   verdict: $(judged outcome); lost $(judged lost), written twice $(judged duplicated): what both have committed by then depends on timing"
fact "state of the first job" "$(scripts/flink_status.sh | field state)" RUNNING
prove "Alone again, the first job recovers. Give each job a prefix of its own, as classic.py has."
finish
