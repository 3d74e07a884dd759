#!/usr/bin/env bash
# Summary: Kill the TaskManager while it holds an open transaction: what readers see, and what is lost or repeated.
# Usage: scripts/walkthroughs/04_kill_a_taskmanager.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 1 minute
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

# prepared: the newest checkpoint has a transaction that is not committed yet; the restarted job commits it.
prepared() {
  scripts/inspect.sh "${DATA_FOLDER}/checkpoints/flink" --json 2>/dev/null | field transactions fate=open >/dev/null 2>&1
}

begin "$@"

step "kill the TaskManager while windows are written and not committed"
expect "the job writes windows into a transaction, and commits it with the next checkpoint"
wait_for_checkpoints 2 >/dev/null
run scripts/open_transactions.sh "${VISIT_WINDOWS_TOPIC}" --wait 60 | indent
kill_taskmanagers
# A checkpoint may have committed them, or promised to, just before the kill; then the next windows are as good.
until scripts/open_transactions.sh "${VISIT_WINDOWS_TOPIC}" >/dev/null && ! prepared; do
  say "   a checkpoint came just before the kill: try again"
  start_taskmanagers
  wait_for_checkpoints 1 >/dev/null
  scripts/open_transactions.sh "${VISIT_WINDOWS_TOPIC}" --wait 60 >/dev/null
  kill_taskmanagers
done

step "read the topic as it is now"
expect "records of the open transaction, marked uncommitted, behind the committed ones; a reader of committed records stops before them"
records="$(run scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --uncommitted)"
# The last committed record, and the first uncommitted ones behind it.
awk '/^committed/ { last = $0; n = 0 } /^uncommitted/ { if (n < 4) line[++n] = $0 }
  END { print last; for (i = 1; i <= n; i++) print line[i] }' <<<"${records}" | indent
open="$({ scripts/open_transactions.sh "${VISIT_WINDOWS_TOPIC}" || true; } | field open)"
earlier=$(($(grep -c '^uncommitted' <<<"${records}" || true) - open))
fact_is "uncommitted records of the open transaction" "${open}" -gt 0
fact "records that a reader of committed records gets" "$(scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --to-the-end | wc -l | tr -d ' ')" \
  "$(grep -c '^committed' <<<"${records}" || true)"
prove "What the job wrote after its last checkpoint is in the topic, and no reader of committed records gets it."

step "start the TaskManager again"
expect "the job restarts from its last checkpoint by itself, aborts the open transaction, and writes these windows again"
start_taskmanagers
wait_for_checkpoints 2 >/dev/null
say "   restarts of the job: $(scripts/flink_status.sh | field restarts)"

step "judge: was a window lost, or committed twice?"
settle
judge flink
fact "verdict on flink" "$(judged outcome)" holds
fact "windows lost" "$(judged lost)" 0
fact "windows committed twice" "$(judged duplicated)" 0
aborted="$(scripts/consume.sh "${VISIT_WINDOWS_TOPIC}" --uncommitted | grep -c '^uncommitted' || true)"
fact_is "records of aborted transactions in the topic, ${earlier} before the kill" "${aborted}" -gt "${earlier}"
prove "After a SIGKILL every window is committed exactly once; the aborted ones stay invisible."
finish
