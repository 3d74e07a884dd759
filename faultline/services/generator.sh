#!/usr/bin/env bash
# Summary: Run the generator in the foreground; STACK_GENERATOR_ARGS: further flags, separated by spaces.
# Usage: faultline/services/generator.sh [FLAG...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

read -r -a more <<<"${STACK_GENERATOR_ARGS:-}"
cd "${ROOT}"
# bash 3.2 treats an empty array as unset.
exec "${ARTIFACTS}/venv-tools/bin/python" -m generator ${more[@]+"${more[@]}"} "$@"
