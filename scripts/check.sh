#!/usr/bin/env bash
# Summary: Run a contributor's checks: shellcheck, shfmt, ruff, mypy. Seconds, no JVM.
# Usage: scripts/check.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../services/environment.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib/preflight.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib/artifacts.sh"
case "${1:-}" in
  "") ;;
  --help | -h)
    print_help
    exit 0
    ;;
  *) die "unknown argument '$1'; see --help" ;;
esac

check_python
make_environment tools || die "the tools could not be fetched; see the lines above, then run again"
make_dev_environment
cd "${ROOT}"
bin="${ARTIFACTS}/venv-tools/bin"
mapfile -t shell_files < <(git ls-files '*.sh' .ci/run)
say "shellcheck and shfmt: ${#shell_files[@]} files"
"${bin}/shellcheck" "${shell_files[@]}"
"${bin}/shfmt" --indent 2 --case-indent --diff "${shell_files[@]}"
say "ruff"
"${bin}/ruff" check --quiet .
"${bin}/ruff" format --quiet --check .
say "mypy"
"${bin}/mypy" --no-error-summary
