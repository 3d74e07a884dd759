#!/usr/bin/env bash
# Summary: Cancel the Flink job after two more checkpoints, restore it from the last by name, and read the topic again.
# Usage: scripts/walkthroughs/02_cancel_and_restore.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 1 minute
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"
begin "$@"

step "let the job complete two checkpoints"
wait_for_checkpoints 2 >/dev/null
run scripts/flink_checkpoints.sh | tail -n 3 | indent

step "cancel the job"
expect "no savepoint is made; the checkpoints stay, since their retention is RETAIN_ON_CANCELLATION"
job_id="$(run scripts/flink_cancel.sh)"
chk="$(scripts/flink_checkpoints.sh | awk -v job="${job_id}" '$1 == job && $NF == "complete" { newest = $2 } END { print newest }')"
files="$(run scripts/files.sh "${DATA_FOLDER}/checkpoints/flink/${job_id}/${chk}")"
indent <<<"${files}"
fact "${chk}/_metadata" "$(grep -c ' _metadata$' <<<"${files}") file" "1 file"
prove "A cancelled job leaves its checkpoints behind."

step "read the topic: the windows that the job has committed"
expect "the newest windows, and no further ones while no job runs"
run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --last 1 | indent
before="$(windows)"

step "restore the job from ${chk}, by its name"
expect "it reads on where ${chk} ends; the visits that came meanwhile are counted, the earlier ones are not counted again"
promised="$(offsets_in "${chk}")"
run scripts/flink_restore.sh "${chk}" >/dev/null
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
prove "The restored job continues at the checkpoint's offsets, not at the beginning of the topic."

step "read the topic again"
wait_for_checkpoints 3 >/dev/null
run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --last 1 | indent
fact_is "committed windows, ${before} before" "$(windows)" -gt "${before}"

step "judge: was a window lost or written twice?"
settle
judge flink
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
prove "The output goes on as if the job had never been cancelled."
finish
