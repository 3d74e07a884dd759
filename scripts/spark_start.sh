#!/usr/bin/env bash
# Summary: Start the Spark synchronizer; its own flags may follow.
# Usage: scripts/spark_start.sh [FLAG...] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/spark_start.sh spark_start "$@"
