#!/usr/bin/env bash
# Summary: Show each service: its state and its resident memory.
# Usage: scripts/status.sh [--backend compose|local]
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/status.sh status "$@"
