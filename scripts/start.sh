#!/usr/bin/env bash
# Summary: Start one service of a stack that is up; extra arguments go to the service.
# Usage: scripts/start.sh SERVICE [ARGUMENT...] [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
[[ "${ARGS[0]}" == kafka ]] || require_running kafka
if [[ "$(service_state "${ARGS[0]}")" == running ]]; then
  say "${ARGS[0]} is running already"
  exit 0
fi
service_start "${ARGS[@]}"
say "${ARGS[0]} was started"
