#!/usr/bin/env bash
# Summary: Let a frozen service go on.
# Usage: scripts/resume.sh SERVICE [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
require_service "${ARGS[0]:-}"
state="$(service_state "${ARGS[0]}")"
[[ "${state}" == paused ]] || die "service ${ARGS[0]} is ${state}, not paused"
service_resume "${ARGS[0]}"
say "${ARGS[0]} goes on"
