#!/usr/bin/env bash
# Summary: Measure both pipelines against Kafka's own consumer perf test, in one run, records counted in and out.
# Usage: benchmarks/throughput.sh [RECORDS]
#
# RECORDS: 1000000 by default; half a million is the least that says something. Local backend, a stack of its own in a
# temporary folder, on the stack's ports. Prints a table; the ratios are what counts, not the seconds.
set -euo pipefail
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
STACK_HOME="$(mktemp --directory --tmpdir faultline-throughput.XXXXXX)"
export STACK_HOME
# Offsets are committed with each checkpoint: a short interval is a fine clock.
export FLINK_CHECKPOINT_INTERVAL_MS=1000
# The window of the published design that this job is compared with elsewhere.
export FLINK_WINDOW_SECONDS=45
source "${folder}/../scripts/lib/stack.sh"
load_stack --backend local "$@"
readonly RECORDS="${ARGS[0]:-1000000}" LIMIT_SECONDS=300
[[ "${RECORDS}" =~ ^[1-9][0-9]*$ ]] || die "RECORDS is a whole number, not '${RECORDS}'"

clean_up() {
  trap '' INT TERM
  stack_down --wipe >/dev/null 2>&1 || true
  rm --recursive --force "${STACK_HOME}"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

stack_build
mkdir -p "${STACK_HOME}/checkpoints/spark" "${STACK_HOME}/checkpoints/flink" "${STACK_HOME}/output"
check_ports "${LOCAL_PORTS[@]}"
record_backend
service_start kafka
wait_for 60 "the broker" port_taken "${KAFKA_PORT}"
"${ROOT}/services/topics.sh"
say "filling the topic with ${RECORDS} visits ..."
acknowledged="$(tool_run python -m benchmarks.fill "${RECORDS}")"

# consumer_rate GROUP: records, records per second as the tool gives it (nMsg.sec), and of its fetching alone.
consumer_rate() {
  service_exec kafka kafka-consumer-perf-test.sh --bootstrap-server "${KAFKA_SERVICE_ADDRESS}" \
    --topic "${VISITS_TOPIC}" --group "perf-$1" --num-records "${RECORDS}" --timeout 60000 --hide-header |
    awk -F ', *' 'NF > 8 { print $5, int($6), int($10) }'
}

say "Kafka's own consumer, twice; the second run counts ..."
consumer_rate cold >/dev/null
read -r consumer_records consumer_per_second fetch_per_second <<<"$(consumer_rate warm)"

say "Flink: the second half of the records is measured, all of them are judged ..."
service_start jobmanager
service_start taskmanager
wait_for 60 "the Flink cluster" port_taken "${FLINK_UI_PORT}"
tool_run python -m benchmarks.windows_rate "${RECORDS}" "${LIMIT_SECONDS}" >"${STACK_HOME}/windows.json" &
measuring=$!
service_exec jobmanager python -m flink_job.submit >/dev/null
wait "${measuring}"
# As it is: the last windows stay open, since closing visits would change the number of records.
read -r -a flink <<<"$(tool_run python -m benchmarks.judge flink --as-is)"
service_exec jobmanager python -m flink_job.cancel >/dev/null
windows="$(service_exec kafka kafka-get-offsets.sh --bootstrap-server "${KAFKA_SERVICE_ADDRESS}" --topic "${VISIT_WINDOWS_TOPIC}" | awk -F : '{ sum += $3 } END { print sum }')"
service_stop taskmanager
service_stop jobmanager
windows_per_second="$(sed --quiet 's/.*"records_per_second": \([0-9]*\).*/\1/p' "${STACK_HOME}/windows.json")"

say "Spark: five batches in one run; the first two warm the JVM ..."
tool_run python -m spark_job.visits_json_synchronizer --trigger available-now \
  --max-offsets-per-trigger $((RECORDS / 5)) 2>"${STACK_HOME}/spark.log"
read -r spark_records spark_per_second <<<"$(sed --quiet --regexp-extended 's/.* batch [0-9]+.*, ([0-9]+) rows, ([0-9.]+) s$/\1 \2/p' "${STACK_HOME}/spark.log" |
  awk '{ all += $1 } NR > 2 { rows += $1; seconds += $2 } END { print all, (seconds ? int(rows / seconds) : 0) }')"
lines="$(find "${STACK_HOME}/output" -type f -name 'part-*' -exec cat {} + | wc --lines)"
read -r -a spark <<<"$(tool_run python -m benchmarks.judge spark)"

# ratio RECORDS_PER_SECOND: of what Kafka's own consumer reads.
ratio() {
  awk "BEGIN { printf \"%.2f\", $1 / ${consumer_per_second} }"
}

row() {
  printf '%-34s %12s %12s %12s %8s  %s\n' "$@"
}
row "${RECORDS} visits, ${acknowledged} in topic" "records in" "out" "records/s" ratio verdict
row "Kafka consumer perf test" "${consumer_records}" "-" "${consumer_per_second}" 1.00 "-"
row "  the same, fetching alone" "${consumer_records}" "-" "${fetch_per_second}" \
  "$(ratio "${fetch_per_second}")" "-"
row "Flink windows, exactly-once" "${RECORDS}" "${windows}" "${windows_per_second}" \
  "$(ratio "${windows_per_second}")" "${flink[0]}"
row "Spark synchronizer, file sink" "${spark_records}" "${lines}" "${spark_per_second}" \
  "$(ratio "${spark_per_second}")" "${spark[0]}"
printf '\n'
row "judging these ${RECORDS} visits" expected observed seconds MiB verdict
row "verdict flink" "${flink[@]:1:3}" "${flink[6]}" "${flink[0]}"
row "verdict spark" "${spark[@]:1:3}" "${spark[6]}" "${spark[0]}"
[[ "${consumer_records}" == "${RECORDS}" && "${spark_records}" == "${RECORDS}" && "${lines}" == "${RECORDS}" ]] ||
  die "the records counted differ from ${RECORDS}: this is no measurement" 1
