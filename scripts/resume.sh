#!/usr/bin/env bash
# Summary: Let a frozen service go on.
# Usage: scripts/resume.sh SERVICE [--backend compose|local]
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/resume.sh resume "$@"
