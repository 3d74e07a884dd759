#!/usr/bin/env bash
# Summary: SIGKILL the Spark synchronizer between a batch's offsets and its commit, and see which batch runs next.
# Usage: scripts/walkthroughs/10_kill_the_synchronizer.sh [--pause] [--backend compose|local] [--profile cluster]
#
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: the stack
# Takes: 1 minute
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

begin "$@"
checkpoint="${DATA_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}"
mark="${HOME_FOLDER}/checkpoints/spark/${SPARK_QUERY_NAME}.held"

step "hold the next batch between its offsets and its commit"
expect "offsets/N is written before the batch runs, commits/N after it"
run scripts/spark_stop.sh
HELD=true
run scripts/spark_start.sh --hold-batch next
until_true 180 "a batch that is held" test -s "${mark}"
batch="$(<"${mark}")"
planned="$(run scripts/files.sh "${checkpoint}/offsets/${batch}")"
tail -n 1 <<<"${planned}" | indent
fact "commits/${batch}" "$(committed "${checkpoint}" "${batch}" && echo there || echo missing)" missing

step "kill it with SIGKILL"
run scripts/kill.sh spark
HELD=false
show scripts/inspect.sh "${checkpoint}" --last 1
scripts/inspect.sh "${checkpoint}" --last 1 2>/dev/null | indent
promised="$(range_promised "${checkpoint}")"

step "start it again"
expect "batch ${batch} runs again, with the very same range of offsets"
run scripts/spark_start.sh
until_true 180 "batch ${batch} run again" spark_says "batch ${batch} (re-run"
scripts/logs.sh spark 200 | grep -F "batch ${batch} (re-run" | tail -n 1 | indent
fact "batch ${batch} has read again, by the synchronizer's log" "$(range_rerun "${batch}")" "${promised}"
fact "offsets/${batch}, byte for byte" "$(test "$(scripts/files.sh "${checkpoint}/offsets/${batch}")" == "${planned}" && echo unchanged || echo changed)" unchanged
fact "mark of a held batch" "$(test -e "${mark}" && echo there || echo gone)" gone
prove "A batch that was planned and not committed runs again with the range in its offsets file."

step "judge: was a record lost or written twice?"
settle
judge spark
fact "verdict on spark" "$(judged outcome)" holds
fact "records lost" "$(judged lost)" 0
fact "records written twice" "$(judged duplicated)" 0
prove "The batch began twice, and its records are in the output once."
finish
