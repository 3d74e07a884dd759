#!/usr/bin/env bash
# Summary: Open a Spark or Flink checkpoint: what is in it, and what a restart from it would do.
# Usage: scripts/inspect.sh PATH [--json] [--follow] [--state] [--all] [--bootstrap HOST:PORT] [--backend compose|local]
#        scripts/inspect.sh --diff PATH OTHER_PATH [--json] [--backend compose|local]
#
# PATH: checkpoints/spark/<query>, checkpoints/flink[/<job id>[/chk-N]], a savepoint. --help lists every flag.
# Reads only. Exit codes: 0 read, 1 a problem was found, 2 wrong usage.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"
((${#ARGS[@]} > 0)) || die "which checkpoint? e.g. scripts/inspect.sh checkpoints/flink; there are: $(
  cd "${STACK_HOME}" && printf '%s ' checkpoints/spark/*/ checkpoints/flink/*/
)"

# A path means the same file in a container as on the host.
arguments=() paths=()
for argument in "${ARGS[@]}"; do
  if [[ "${argument}" != -* && -e "${argument}" ]]; then
    argument="$(path_in_service "${argument}")"
    paths+=("${argument}")
  fi
  arguments+=("${argument}")
done

# Flink's files need Flink's classes: in containers those are not beside the tools.
if ((${#paths[@]} == 0)) || tool_run python -m inspector --can-read "${paths[@]}"; then
  tool_run python -m inspector "${arguments[@]}"
else
  service_exec jobmanager python -m inspector "${arguments[@]}"
fi
