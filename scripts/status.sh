#!/usr/bin/env bash
# Summary: Show each service, the Flink job, the newest batch, and how far both pipelines are behind.
# Usage: scripts/status.sh [--json] [--backend compose|local]
#
# Exit codes: 0 all is well, 1 it is not; each problem is a line with its next step.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/status.sh status "$@"
