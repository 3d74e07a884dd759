#!/usr/bin/env bash
# Summary: Restore a job with one more aggregate from a savepoint of the old one: what Flink refuses, and what works.
# Usage: scripts/walkthroughs/20_one_more_aggregate.sh [--pause] [--backend compose|local] [--profile cluster]
#
# The changed job is flink_job/one_more_aggregate.py.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 6 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

readonly RATE=200
readonly CHANGED=flink_job/one_more_aggregate.py
# What `seen` has seen of a command: all that it said, and its exit code.
WORDS="" CODE_SEEN=""

# seen COMMAND...: runs it, and keeps what it says and its exit code.
seen() {
  show "$@"
  CODE_SEEN=0
  WORDS="$("$@" 2>&1)" || CODE_SEEN=$?
}

# says TEXT: whether WORDS have it; shows the first line that does.
says() {
  local line
  if line="$(grep -F -m 1 -e "$1" <<<"${WORDS}")"; then
    cut -c 1-400 <<<"${line}" | indent
    echo yes
  else
    indent <<<"${WORDS}"
    echo no
  fi
}

# against PLACE: sets the savepoint against the job with the aggregate in this place.
against() {
  seen scripts/inspect.sh "${savepoint}" --against "${CHANGED}" -- --place "$1"
}

# restore PLACE: restores the savepoint with the aggregate in this place.
restore() {
  seen scripts/flink_restore.sh "${savepoint}" --program "${CHANGED}" -- --place "$1"
}

# raw_offsets CHECKPOINT: where a restored job reads on in each partition, as JSON.
raw_offsets() {
  scripts/exec.sh jobmanager python -m faultline.inspector.flink offsets "$1"
}

# pages OFFSETS...: the new aggregate against a count of the source; see faultline/probes/pages.py.
pages() {
  scripts/exec.sh spark python -m faultline.probes.pages "$@"
}

has_whole_windows() {
  (($(pages "${began}" | field whole) > 0))
}

begin "$@"

step "load the job: ${RATE} visits a second"
run scripts/generator_stop.sh
run scripts/generator_start.sh --rate "${RATE}"
wait_for_checkpoints 2 >/dev/null

step "stop it with a savepoint"
savepoint="$(stop_with_savepoint)"
promised="$(offsets_in "${savepoint}")"
began="$(raw_offsets "${savepoint}")"

step "put the aggregate into the existing window operator"
expect "its state has three numbers for each window; with COUNT(DISTINCT page) it has another type"
against same-operator
fact "exit code of the inspector, 1: the job cannot restore it" "${CODE_SEEN}" 1
fact "it names the operator: windows: its state cannot be opened" "$(says 'windows: its state cannot be opened')" yes
restore same-operator
fact_is "exit code of the restore" "${CODE_SEEN}" -gt 0
fact "Flink says: the new state serializer must not be incompatible with the old one" \
  "$(says 'must not be incompatible with the old state serializer')" yes
prove "One more aggregate in the same operator is another type of state: Flink refuses the restore, and the inspector predicts this."

step "give that operator another uid"
expect "the old state belongs to the uid 'windows', which the job does not have"
against other-uid
fact "exit code of the inspector" "${CODE_SEEN}" 1
restore other-uid
fact_is "exit code of the restore" "${CODE_SEEN}" -gt 0
fact "Flink says: cannot map checkpoint/savepoint state" "$(says 'Cannot map checkpoint/savepoint state')" yes
say "   with --allowNonRestoredState it would run, and the windows that are open in the savepoint would be lost"
prove "Another uid leaves the old state without an operator: Flink refuses that, too."

step "give the aggregate an operator of its own, beside the old one"
expect "the old operator gets its state, the new one begins without any, and writes to ${VISIT_PAGES_TOPIC}"
against own-operator
fact "exit code of the inspector, 0: the job can restore it" "${CODE_SEEN}" 0
fact "it names the new operator: begins without state: pages" "$(says 'begins without state: pages')" yes
restore own-operator
((CODE_SEEN == 0)) || indent <<<"${WORDS}"
fact "exit code of the restore" "${CODE_SEEN}" 0
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
until_true 180 "a complete window on ${VISIT_PAGES_TOPIC}" has_whole_windows
prove "An operator of its own, with a uid of its own, leaves the old state as it is."

step "stop this job with a savepoint too, and count its pages again from the source"
expect "windows that were open at the first savepoint have too few pages, all later ones are complete"
savepoint="$(stop_with_savepoint)"
counted="$(pages "${began}" "$(raw_offsets "${savepoint}")")"
say "   ${counted}"
say "   the first complete window begins at $(field whole_from <<<"${counted}")"
fact_is "windows before it with too few pages" "$(field short <<<"${counted}")" -gt 0
fact_is "windows from it on" "$(field whole <<<"${counted}")" -gt 0
fact "those of them that differ from the count" "$(field wrong <<<"${counted}")" 0
prove "The new aggregate is complete from the first window without a visit from before the savepoint."

step "go back to the job as it was"
expect "now the new operator's state has no operator in the job, and Flink refuses it by the same rule"
promised="$(offsets_in "${savepoint}")"
seen scripts/inspect.sh "${savepoint}" --against windows
fact "exit code of the inspector" "${CODE_SEEN}" 1
dropped="$(sed -n 's/.*would drop the state of: //p' <<<"${WORDS}")"
say "   --allowNonRestoredState would drop the state of: ${dropped}"
fact "operators among them that are not of the pages" "$(tr ',' '\n' <<<"${dropped}" | grep -c -v pages || true)" 0
seen scripts/flink_restore.sh "${savepoint}"
fact_is "exit code of the restore" "${CODE_SEEN}" -gt 0
fact "Flink says: cannot map checkpoint/savepoint state" "$(says 'Cannot map checkpoint/savepoint state')" yes
say "   only pages are dropped, and their last transaction ended with the job: here the flag is right"
run scripts/exec.sh jobmanager flink run --detached --fromSavepoint "${savepoint}" --claimMode NO_CLAIM \
  --allowNonRestoredState --python flink_job/stateful_flink_consumer.py | indent
wait_for_checkpoints 2 >/dev/null
fact "the job began to read, by its log, at" "$(offsets_read)" "${promised}"
prove "The way back needs --allowNonRestoredState, which drops the new operator's state and no other."

step "judge: was a window of the old aggregate lost, or written twice?"
settle
judge flink
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows written twice" "$(judged duplicated)" 0
prove "The old windows went on through both changes: each is written once."
finish
