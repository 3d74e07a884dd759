#!/usr/bin/env bash
# Summary: Run a class of the broker's jars: the launcher used by all tools of this folder.
# Usage: kafka-run-class.sh CLASS [ARGUMENT...]
#
# The Kafka jars come from a Maven repository, which has no shell scripts; the tools here carry
# the names that Kafka's own distribution gives them, so that commands of its manual work.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
artifacts="${STACK_ARTIFACTS:-${here}/../../../../.artifacts}"
short="${STACK_JVM_FLAGS_SHORT:-$(sed -n 's/^STACK_JVM_FLAGS_SHORT=//p' "${here}/../../../../.env")}"
read -r -a heap <<<"${KAFKA_HEAP_OPTS:--Xmx256m ${short}}"
exec java "${heap[@]}" \
  -Dlog4j2.configurationFile="${here}/../conf/log4j2.yaml" \
  -Dfaultline.log.level="${KAFKA_LOG_LEVEL:-warn}" \
  -Djava.net.preferIPv4Stack=true \
  -cp "${artifacts}/jars/kafka/*" "$@"
