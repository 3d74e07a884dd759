#!/usr/bin/env bash
# Summary: Stop the whole stack; what it wrote stays, so that the next up goes on from there.
# Usage: scripts/down.sh [--wipe] [--backend compose|local]
#
# --wipe also removes topics, checkpoints and outputs: the next up starts clean.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
case "${ARGS[*]}" in
  "") stack_down ;;
  --wipe) stack_down --wipe ;;
  *) die "unknown argument '${ARGS[*]}'; see --help" ;;
esac
say "the stack is down (backend ${BACKEND})"
