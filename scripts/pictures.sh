#!/usr/bin/env bash
# Summary: Make the pictures of Flink's, Spark's and the live page in docs/pictures/, by a headless browser on real runs.
# Usage: scripts/pictures.sh [--backend compose|local]
#
# Starts what does not run, and cancels and restores the Flink job. Needs Chromium and chromedriver on PATH.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/lib/walkthrough.sh"
begin "$@"

step "the live page, playing recorded runs"
scripts/lib/verb.sh scripts/pictures.sh pictures page

step "while everything runs"
wait_for_checkpoints 3 >/dev/null
scripts/lib/verb.sh scripts/pictures.sh pictures running

step "after a cancel"
run scripts/flink_cancel.sh >/dev/null
scripts/lib/verb.sh scripts/pictures.sh pictures cancelled
run scripts/flink_restore.sh latest >/dev/null
find docs/pictures -name '*.png' | sort | indent
finish
