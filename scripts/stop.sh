#!/usr/bin/env bash
# Summary: Stop one service with SIGTERM and wait until it has ended.
# Usage: scripts/stop.sh SERVICE [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
service_stop "${ARGS[0]}"
say "${ARGS[0]} has stopped"
