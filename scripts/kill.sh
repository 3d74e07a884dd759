#!/usr/bin/env bash
# Summary: Kill a service with SIGKILL, all of its processes at once; it stays dead until started.
# Usage: scripts/kill.sh SERVICE [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
require_alive "${ARGS[0]}"
service_kill "${ARGS[0]}"
say "${ARGS[0]} was killed; start it again with scripts/start.sh ${ARGS[0]}"
