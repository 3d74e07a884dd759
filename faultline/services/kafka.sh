#!/usr/bin/env bash
# Summary: Run a Kafka broker, which is a KRaft controller too, in the foreground.
# Usage: faultline/services/kafka.sh [kafka-2|kafka-3] [--data FOLDER]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python3 -m faultline.services.kafka.start "$@"
