#!/usr/bin/env bash
# Summary: Start one service of a stack that is up; extra arguments go to the service.
# Usage: scripts/start.sh SERVICE [ARGUMENT...] [--backend compose|local]
#
# Arguments: flags of the generator or of the synchronizer (spark); they are checked first. Returns once the broker or
# the JobManager answers; the others may still be starting.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/start.sh start "$@"
