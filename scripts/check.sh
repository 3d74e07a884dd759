#!/usr/bin/env bash
# Summary: Run a contributor's checks: shellcheck, shfmt, ruff, mypy. Seconds, no JVM.
# Usage: scripts/check.sh
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/check.sh check "$@"
