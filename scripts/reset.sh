#!/usr/bin/env bash
# Summary: Between two classes: stop the stack, remove topics, checkpoints and outputs; environments and images stay.
# Usage: scripts/reset.sh [--backend compose|local]
#
# The same as scripts/down.sh --wipe. Edited notebooks (output/notebooks) stay.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/reset.sh reset "$@"
