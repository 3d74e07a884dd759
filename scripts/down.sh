#!/usr/bin/env bash
# Summary: Stop the whole stack; its files stay, so that the next up continues from there.
# Usage: scripts/down.sh [--wipe] [--backend compose|local]
#
# --wipe also removes topics, checkpoints and outputs: the next up starts clean.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/down.sh down "$@"
