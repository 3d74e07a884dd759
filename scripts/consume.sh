#!/usr/bin/env bash
# Summary: Read a topic with Kafka's console consumer; committed records only, by default.
# Usage: scripts/consume.sh TOPIC [--from-beginning] [--last N] [--uncommitted] [CONSUMER FLAG...] [--backend compose|local]
#
# --last N       print the last N records of each partition and exit
# --uncommitted  read the topic to its present end and mark each record as committed or not;
#                `uncommitted` means that its transaction is still open or was aborted
# Other flags go to kafka-console-consumer.sh (--max-messages, --timeout-ms, --partition, ...).
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/consume.sh consume "$@"
