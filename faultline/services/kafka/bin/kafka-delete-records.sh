#!/usr/bin/env bash
# Summary: The tool of this name in Kafka's own manual.
# Usage: kafka-delete-records.sh [ARGUMENT...]
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/kafka-run-class.sh" org.apache.kafka.tools.DeleteRecordsCommand "$@"
