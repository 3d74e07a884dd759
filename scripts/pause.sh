#!/usr/bin/env bash
# Summary: Freeze a service (SIGSTOP, or the engine's pause); it keeps its memory and its sockets.
# Usage: scripts/pause.sh SERVICE [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
require_running "${ARGS[0]}"
service_pause "${ARGS[0]}"
say "${ARGS[0]} is frozen; scripts/resume.sh ${ARGS[0]} lets it go on"
