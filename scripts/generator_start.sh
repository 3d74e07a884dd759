#!/usr/bin/env bash
# Summary: Start the generator; its own flags may follow.
# Usage: scripts/generator_start.sh [FLAG...] [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/generator_start.sh generator_start "$@"
