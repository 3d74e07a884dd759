#!/usr/bin/env bash
# Summary: Measure how long after a window's end a reader gets it, committed or uncommitted.
# Usage: scripts/window_latency.sh [--ends N] [--uncommitted] [--wait SECONDS] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/window_latency.sh window_latency "$@"
