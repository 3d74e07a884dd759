#!/usr/bin/env bash
# Summary: Stop the generator with SIGTERM: it ends what it has begun, then stops.
# Usage: scripts/generator_stop.sh [--backend compose|local]
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/stop.sh" generator "$@"
