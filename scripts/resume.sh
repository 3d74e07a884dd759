#!/usr/bin/env bash
# Summary: Resume a frozen service.
# Usage: scripts/resume.sh SERVICE [--backend compose|local]
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/resume.sh resume "$@"
