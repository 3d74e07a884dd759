#!/usr/bin/env bash
# Summary: Stop the Spark synchronizer with SIGTERM: it finishes its running batch, then stops.
# Usage: scripts/spark_stop.sh [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/spark_stop.sh spark_stop "$@"
