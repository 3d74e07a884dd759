#!/usr/bin/env bash
# Summary: Read a topic with Kafka's console consumer; committed records only, by default.
# Usage: scripts/consume.sh TOPIC [--from-beginning] [CONSUMER FLAG...] [--backend compose|local]
#        scripts/consume.sh TOPIC --to-the-end | --last N | --uncommitted [--backend compose|local]
#
# --to-the-end   print the records of each partition to its present end, and exit
# --last N       only the last N records of each partition
# --uncommitted  all records to the present end, each marked as committed or not;
#                `uncommitted` means that its transaction is still open or was aborted
# Other flags go to kafka-console-consumer.sh (--max-messages, --timeout-ms, --partition, ...).
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/consume.sh consume "$@"
