#!/usr/bin/env bash
# Summary: Measure what the live page costs while visits come in fast: its server, its inspector, and a browser's frames.
# Usage: benchmarks/page.sh [VISITS_PER_SECOND [SECONDS]]
#
# 10000 visits per second for 60 seconds by default, into 8 partitions. Runs a stack of its own in a temporary folder,
# on free ports. Needs Chromium and its driver (Debian: chromium, chromium-driver).
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../scripts/lib/verb.sh" benchmarks/page.sh benchmark page_cost "$@"
