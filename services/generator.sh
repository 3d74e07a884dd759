#!/usr/bin/env bash
# Summary: Run the generator in the foreground; GENERATOR_ARGS holds further flags, as words.
# Usage: services/generator.sh [FLAG...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

read -r -a more <<<"${GENERATOR_ARGS:-}"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-tools/bin/python" -m generator "${more[@]}" "$@"
