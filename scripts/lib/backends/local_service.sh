#!/usr/bin/env bash
# Summary: Run one service under supervisord, with the arguments that the last start gave it.
# Usage: scripts/lib/backends/local_service.sh SERVICE
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../services/environment.sh"
service="$1"
mapfile -t arguments < <(sed '/^$/d' "${STACK_STATE}/arguments/${service}")
exec "${ROOT}/services/${service}.sh" "${arguments[@]}"
