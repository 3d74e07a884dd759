#!/usr/bin/env bash
# Summary: Run the generator in the foreground; STACK_GENERATOR_ARGS holds further flags, as words.
# Usage: services/generator.sh [FLAG...]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

read -r -a more <<<"${STACK_GENERATOR_ARGS:-}"
cd "${ROOT}"
# bash 3.2 takes an empty array for an unset one.
exec "${ARTIFACTS}/venv-tools/bin/python" -m generator ${more[@]+"${more[@]}"} "$@"
