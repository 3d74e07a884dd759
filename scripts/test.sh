#!/usr/bin/env bash
# Summary: Set up all that the tests need, then run the checks and every tier of tests.
# Usage: scripts/test.sh [unit|judge|stack|compose|all|full] [PYTEST FLAG...]
#
# unit     no JVM, seconds
# judge    no JVM, minutes: pipelines that are wrong in one way each, and faultless ones, before the verdict
# stack    the real stack on the local backend, on ports and in a folder of its own
# compose  the demo on a real container engine
# all      (default) the checks of scripts/check.sh and all tiers; without a container engine it leaves out the
#          tier compose, but with CI=true that is a failure
# full     all, and the long forms of tests that `all` runs in a short one
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
tier="${1:-all}"
case "${tier}" in
  --help | -h)
    print_help
    exit 0
    ;;
  unit | judge | stack | compose | all | full) (($# == 0)) || shift ;;
  *) die "unknown tier '${tier}'; see --help" ;;
esac

# shellcheck source=scripts/lib/backends/local.sh
source "${LIBRARY}/backends/local.sh"
stack_build
make_dev_environment
# The tests run the notebook.
make_notebook_environment

if [[ "${tier}" == all || "${tier}" == full ]]; then
  "${ROOT}/scripts/check.sh"
fi
case "${tier}" in
  unit) parallel=(tests/unit) serial=() markers="" ;;
  judge) parallel=(tests/judge) serial=() markers="" ;;
  stack) parallel=() serial=(tests) markers="stack and not full" ;;
  compose) parallel=() serial=(tests) markers="compose and not full" ;;
  # The quick ones first.
  all) parallel=(tests/unit tests/judge) serial=(tests/stack) markers="not full" ;;
  full) parallel=(tests/unit tests/judge) serial=(tests/stack) markers="" ;;
esac
if [[ "${tier}" == all || "${tier}" == full || "${tier}" == compose ]] && ! docker_answers; then
  [[ "${tier}" != compose ]] || die "no container engine answers; start one, e.g. by .ci/engine.sh start"
  [[ "${CI:-}" != true ]] || die "CI runs the Compose tier, and no container engine answers; .ci/engine.sh starts one"
  say "no container engine answers: the Compose tier is left out"
  markers="${markers:+${markers} and }not compose"
fi
cd "${ROOT}"
# Tests choose their own backends, homes and ports.
unset STACK_BACKEND STACK_HOME STACK_STATE KAFKA_BOOTSTRAP FLINK_REST JOBMANAGER_HOST

# run_pytest ARGUMENT...: remembers a failure and goes on.
failed=0
run_pytest() {
  "${ARTIFACTS}/venv-tools/bin/python" -m pytest -m "${markers}" "$@" || failed=1
}
# A process for each core; a stack has the machine to itself.
((${#parallel[@]} == 0)) || run_pytest --numprocesses auto --dist worksteal "${parallel[@]}" "$@"
((${#serial[@]} == 0)) || run_pytest "${serial[@]}" "$@"
exit "${failed}"
