#!/usr/bin/env bash
# Summary: List all walkthroughs in teaching order: what each shows, needs and takes.
# Usage: scripts/walkthroughs.sh
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/walkthroughs.sh walkthroughs "$@"
