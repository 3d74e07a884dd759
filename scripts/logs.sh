#!/usr/bin/env bash
# Summary: Show the last log lines of a service.
# Usage: scripts/logs.sh SERVICE [LINES] [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
service_logs "${ARGS[0]}" "${ARGS[1]:-50}"
