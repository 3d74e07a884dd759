#!/usr/bin/env bash
# Summary: Add a field to the visits while both engines run, and then give a field another type.
# Usage: scripts/walkthroughs/21_one_more_field.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 3 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

readonly RATE=100 FIELD=campaign

# load FLAG...: restarts the generator with these flags.
load() {
  run scripts/generator_stop.sh
  run scripts/generator_start.sh --rate "${RATE}" "$@"
}

# count WHERE KIND: visits `with` or `without` the field, on the `topic`, in the `output` or in `windows`, by COUNTED.
count() {
  field "$1" "$2" <<<"${COUNTED}"
}

# count_fields: puts the numbers of faultline/probes/fields.py into COUNTED.
count_fields() {
  COUNTED="$(scripts/exec.sh spark python -m faultline.probes.fields "${FIELD}")"
}

both_have_it() {
  count_fields
  (($(count output with) > 0 && $(count windows with) > 0))
}

# rejected: how many records the job has set aside as no visits.
rejected() {
  STACK_SHOW_COMMANDS="" scripts/consume.sh "${VISITS_REJECTED_TOPIC}" --to-the-end | wc -l | tr -d ' '
}

# retyped: how many visits on the topic have a number for their event time.
retyped() {
  STACK_SHOW_COMMANDS="" scripts/consume.sh "${VISITS_TOPIC}" --to-the-end | grep -c '"event_time":[0-9]' || true
}

more_are_rejected() {
  (($(rejected) > rejected_before))
}

begin "$@"

step "load both engines with visits as they are: ${RATE} a second"
load
wait_for_checkpoints 2 >/dev/null
running="$(engines)"
rejected_before="$(rejected)"
retyped_before="$(retyped)"
say "   ${running}"

step "add a field to the visits, and touch neither engine"
expect "Spark copies each record as it is, and Flink reads the fields that it needs: both go on"
load --campaigns 5
until_true 180 "the new field in Spark's output, and a window of a visit that has it" both_have_it
say "   lines of the output: $(count output with) with the field, $(count output without) without it"
say "   windows: $(count windows with) of visits with it, $(count windows without) of visits without it"
fact_is "lines of the output with the field" "$(count output with)" -gt 0
fact_is "lines of the output without it" "$(count output without)" -gt 0
fact_is "windows of visits with it" "$(count windows with)" -gt 0
fact "records that were rejected meanwhile" "$(($(rejected) - rejected_before))" 0
fact "the engines' runs" "$(engines)" "${running}"
prove "One more field needs no restart: old and new visits are side by side in the output, and windows go on."

step "let one visit in ten have its event_time as a number"
expect "the contract asks for a string: these are not visits, and the job sets them aside on ${VISITS_REJECTED_TOPIC}"
load --campaigns 5 --retyped-percent 10
until_true 120 "the first of them on ${VISITS_REJECTED_TOPIC}" more_are_rejected
settle
fact "the engines' runs" "$(engines)" "${running}"
judge flink
fact "records rejected meanwhile, by the verdict, are those with a number" \
  "$(($(judged rejected) - rejected_before))" "$(($(retyped) - retyped_before))"
prove "A field of another type stops nothing: what the contract refuses is set aside, and counted."

step "judge both pipelines"
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
judge spark
fact "verdict on spark" "$(judged outcome)" holds
fact "records lost" "$(judged lost)" 0
fact "records written twice" "$(judged duplicated)" 0
count_fields
fact "lines with the field; on the topic are as many" "$(count output with)" "$(count topic with)"
fact "lines without it; on the topic are as many" "$(count output without)" "$(count topic without)"
prove "Both verdicts hold, over old visits, new ones and refused ones."
finish
