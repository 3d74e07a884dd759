#!/usr/bin/env bash
# Summary: Run the Kafka broker (KRaft, one node) in the foreground.
# Usage: services/kafka.sh [DATA_FOLDER]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python3 -m broker.start "$@"
