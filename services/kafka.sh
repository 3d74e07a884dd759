#!/usr/bin/env bash
# Summary: Run the Kafka broker (KRaft, one node) in the foreground.
# Usage: services/kafka.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

data="${KAFKA_DATA:-${STACK_STATE}/kafka}"
mkdir -p "${data}"
config="${data}/server.properties"

# Where host clients and containers are told to come back to.
host_listener="${BIND_ADDRESS}:${KAFKA_PORT}"
container_listener="${KAFKA_CONTAINER_HOST:-${BIND_ADDRESS}}:${KAFKA_CONTAINER_PORT}"

sed \
  --expression "s|@BIND_HOST@|${KAFKA_BIND_HOST:-${BIND_ADDRESS}}|g" \
  --expression "s|@HOST_LISTENER@|${host_listener}|g" \
  --expression "s|@CONTAINER_LISTENER@|${container_listener}|g" \
  --expression "s|@HOST_PORT@|${KAFKA_PORT}|g" \
  --expression "s|@CONTAINER_PORT@|${KAFKA_CONTAINER_PORT}|g" \
  --expression "s|@CONTROLLER_PORT@|${KAFKA_CONTROLLER_PORT}|g" \
  --expression "s|@DATA@|${data}|g" \
  --expression "s|@PARTITIONS@|${TOPIC_PARTITIONS}|g" \
  --expression "s|@RETENTION_MS@|${TOPIC_RETENTION_MS}|g" \
  --expression "s|@TRANSACTION_MAX_TIMEOUT_MS@|${KAFKA_TRANSACTION_MAX_TIMEOUT_MS}|g" \
  "${ROOT}/broker/conf/server.properties" >"${config}"

if [[ ! -f "${data}/logs/meta.properties" ]]; then
  # 16 random bytes in base64, as kafka-storage.sh random-uuid prints them, without a JVM's start.
  cluster_id="$(head --bytes 16 /dev/urandom | base64 | tr '+/' 'AB' | tr --delete '=')"
  "${ROOT}/broker/bin/kafka-storage.sh" format --standalone --ignore-formatted \
    --cluster-id "${cluster_id}" --config "${config}" >&2
fi

export KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS:--Xms256m -Xmx384m ${JVM_FLAGS}}"
exec "${ROOT}/broker/bin/kafka-server-start.sh" "${config}"
