#!/usr/bin/env bash
# Summary: Read a topic with Kafka's console consumer; only committed records unless told otherwise.
# Usage: scripts/consume.sh TOPIC [--from-beginning] [--last N] [--uncommitted] [CONSUMER FLAG...] [--backend compose|local]
#
# --last N       print the last N records of each partition and end
# --uncommitted  read the topic to its present end and say of each record whether a transaction
#                has committed it; `uncommitted` stands for one still open or aborted
# Other flags go to kafka-console-consumer.sh (--max-messages, --timeout-ms, --partition, ...).
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/consume.sh consume "$@"
