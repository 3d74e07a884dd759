#!/usr/bin/env bash
# Summary: Succeed when the service of this container is ready; Compose calls it every few seconds.
# Usage: docker/health.sh SERVICE
#
# Only bash builtins where possible: a check must cost little CPU during a demo on two cores.
set -euo pipefail

listens() { exec 3<>"/dev/tcp/127.0.0.1/$1"; }

# Prints the answer of http://HOST:PORT/PATH.
fetch() {
  exec 3<>"/dev/tcp/$1/$2"
  printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$3" "$1" >&3
  local line
  while IFS= read -r -t 3 line <&3 || [[ -n "${line}" ]]; do printf '%s\n' "${line}"; done
}

# A TCP connection to one of the PORTs is established (state 01) from this container.
connected_to() {
  local ports line
  printf -v ports '|%04X' "$@"
  while read -r line; do
    [[ "${line}" =~ ^[0-9]+:\ [0-9A-F]+:[0-9A-F]+\ [0-9A-F]+:(${ports#|})\ 01\  ]] && return 0
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  return 1
}

case "${1:-}" in
  # The broker opens its listeners last, once it serves requests.
  kafka) listens "${STACK_KAFKA_CONTAINER_PORT}" ;;
  kafka-2) listens "${STACK_KAFKA_2_CONTAINER_PORT}" ;;
  kafka-3) listens "${STACK_KAFKA_3_CONTAINER_PORT}" ;;
  generator)
    connected_to "${STACK_KAFKA_CONTAINER_PORT}" "${STACK_KAFKA_2_CONTAINER_PORT}" "${STACK_KAFKA_3_CONTAINER_PORT}"
    ;;
  spark) listens "${STACK_SPARK_UI_PORT}" ;;
  page) listens "${STACK_PAGE_PORT}" ;;
  spark-master) [[ "$(fetch 127.0.0.1 "${STACK_SPARK_MASTER_UI_PORT}" /json/)" =~ \"status\"\ *:\ *\"ALIVE\" ]] ;;
  spark-worker) listens "${STACK_SPARK_WORKER_UI_PORT}" ;;
  spark-worker-2) listens "${STACK_SPARK_WORKER_2_UI_PORT}" ;;
  spark-worker-3) listens "${STACK_SPARK_WORKER_3_UI_PORT}" ;;
  store) [[ "$(fetch 127.0.0.1 "${STACK_STORE_PORT}" /healthz)" == 'HTTP/1.'?' 200 '* ]] ;;
  zookeeper) listens "${STACK_ZOOKEEPER_PORT}" ;;
  jobmanager) [[ "$(fetch 127.0.0.1 "${STACK_FLINK_UI_PORT}" /overview)" == *'"taskmanagers"'* ]] ;;
  jobmanager-2) [[ "$(fetch 127.0.0.1 "${STACK_FLINK_STANDBY_UI_PORT}" /overview)" == *'"taskmanagers"'* ]] ;;
  # Healthy means that a JobManager counts it, not only that the process runs.
  taskmanager)
    [[ "$( (fetch "${STACK_JOBMANAGER_HOST}" "${STACK_FLINK_UI_PORT}" /overview) ||
      (fetch jobmanager-2 "${STACK_FLINK_STANDBY_UI_PORT}" /overview))" =~ \"taskmanagers\":[1-9] ]]
    ;;
  *)
    echo "health: no service is called '${1:-}'" >&2
    exit 2
    ;;
esac
