#!/usr/bin/env bash
# Summary: Stop the generator with SIGTERM: it finishes the records it has begun, then stops.
# Usage: scripts/generator_stop.sh [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/generator_stop.sh generator_stop "$@"
