#!/usr/bin/env bash
# Summary: Show each service: its state and its resident memory.
# Usage: scripts/status.sh [--backend compose|local]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"

total=0
printf '%-12s %-8s %12s\n' service state "memory (MiB)"
for service in "${SERVICES[@]}"; do
  bytes="$(service_memory "${service}")"
  total=$((total + bytes))
  printf '%-12s %-8s %12d\n' "${service}" "$(service_state "${service}")" $((bytes / 1048576))
done
printf '%-12s %-8s %12d\n' total "" $((total / 1048576))
say "backend ${BACKEND} (${BACKEND_REASON})"
