#!/usr/bin/env bash
# Summary: Delete one part of a checkpoint after another, start Spark each time, and count what was lost or repeated.
# Usage: scripts/walkthroughs/15_delete_x_then_start.sh [--pause] [--clean] [--write] [--spark RELEASE]
#
# Proves that docs/spark_checkpoint_surgery.md is what a run measures. --write rewrites that page.
# --spark measures another release, whose environment `python -m faultline.packages.release spark RELEASE` made before.
# --pause waits for Enter before each step; --clean first removes what an earlier run left.
# Its files stay in output/labs/15_delete_x_then_start to look at.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; neither Docker nor the stack (it starts a broker of its own)
# Takes: 3 minutes
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/../lib/verb.sh" scripts/walkthroughs/15_delete_x_then_start.sh lab delete_x_then_start "$@"
