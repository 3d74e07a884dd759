#!/usr/bin/env bash
# Summary: Restore the same job from its newest checkpoint, from an older one, and submit it without: count the duplicates.
# Usage: scripts/walkthroughs/03_with_and_without_a_checkpoint.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack; its topics, checkpoints and outputs are removed at the end
# Takes: 2 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

# written_twice WINDOWS: late and unparsable visits are written twice too, if there are any.
written_twice() {
  if ((others == 0)); then
    fact "windows written twice" "$(judged duplicated)" "$1"
  else
    fact_is "windows and visits written twice; $1 are windows" "$(judged duplicated)" -ge "$1"
    fact_is "windows and visits written twice" "$(judged duplicated)" -le $(($1 + others))
  fi
}

begin "$@"

step "let the job commit windows over several checkpoints, then stop the source"
wait_for_checkpoints 8 >/dev/null
settle
committed="$(windows)"
say "   ${committed} windows are committed"

step "cancel the job and restore it from its newest checkpoint"
expect "nothing is written twice"
job_id="$(run scripts/flink_cancel.sh)"
run scripts/flink_restore.sh latest >/dev/null
# What it writes is committed with the checkpoints that follow.
wait_for_checkpoints 2 >/dev/null
judge flink
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
others=$(($(judged late) + $(judged rejected)))
prove "Restored from the newest checkpoint, the job repeats nothing."

step "cancel it and restore it from the oldest checkpoint that the first run has left"
older="$(scripts/flink_checkpoints.sh | awk -v job="${job_id}" '$1 == job && $NF == "complete" && !found++ { print $2 }')"
older="${DATA_FOLDER}/checkpoints/flink/${job_id}/${older}"
predicted="$(windows_since "${older}")"
expect "${predicted} windows are written twice: those that end after the watermark in ${older##*/}"
run scripts/flink_cancel.sh >/dev/null
spoil "windows will be in the topic twice"
run scripts/flink_restore.sh "${older}" >/dev/null
wait_for_checkpoints 2 >/dev/null
judge flink
fact_is "windows after ${older##*/}" "${predicted}" -gt 0
written_twice "${predicted}"
prove "Restored from an older checkpoint, the job repeats what later checkpoints had committed, and nothing else."

step "cancel it and submit it without a checkpoint"
expect "all ${committed} windows are written again, since the job reads the topic from its earliest offset"
run scripts/flink_cancel.sh >/dev/null
run scripts/flink_submit.sh >/dev/null
wait_for_checkpoints 2 >/dev/null
judge flink
written_twice $((predicted + committed))
prove "Submitted without a checkpoint, the job repeats everything."
finish
