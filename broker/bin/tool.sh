#!/usr/bin/env bash
# Summary: Run the Kafka tool by whose name this is called; the other names here are links to it.
# Usage: NAME.sh [ARGUMENT...], as in Kafka's own manual
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
name="$(basename "$0" .sh)"
case "${name}" in
  kafka-server-start) class=kafka.Kafka ;;
  kafka-storage) class=kafka.tools.StorageTool ;;
  kafka-topics) class=org.apache.kafka.tools.TopicCommand ;;
  kafka-configs) class=kafka.admin.ConfigCommand ;;
  kafka-console-consumer) class=org.apache.kafka.tools.consumer.ConsoleConsumer ;;
  kafka-console-producer) class=org.apache.kafka.tools.ConsoleProducer ;;
  kafka-consumer-groups) class=org.apache.kafka.tools.consumer.group.ConsumerGroupCommand ;;
  kafka-consumer-perf-test) class=org.apache.kafka.tools.ConsumerPerformance ;;
  kafka-producer-perf-test) class=org.apache.kafka.tools.ProducerPerformance ;;
  kafka-get-offsets) class=org.apache.kafka.tools.GetOffsetShell ;;
  kafka-delete-records) class=org.apache.kafka.tools.DeleteRecordsCommand ;;
  kafka-transactions) class=org.apache.kafka.tools.TransactionsCommand ;;
  kafka-dump-log) class=org.apache.kafka.tools.DumpLogSegments ;;
  *)
    echo "kafka tools: no tool is called '${name}'; see the names in ${here}" >&2
    exit 2
    ;;
esac
exec "${here}/kafka-run-class.sh" "${class}" "$@"
