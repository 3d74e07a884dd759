# shellcheck shell=bash
# How a walkthrough of labs/ starts: its environment and jars, fetched where they are missing, then the lab itself.

source "$(dirname "${BASH_SOURCE[0]}")/../../services/environment.sh"
source "${ROOT}/scripts/lib/common.sh"
source "${ROOT}/scripts/lib/preflight.sh"
source "${ROOT}/scripts/lib/artifacts.sh"

# run_lab MODULE JARS... -- ARGUMENT...: runs labs.MODULE, which needs the tools and these groups of jars.
run_lab() {
  local module="$1" jars=() argument
  shift
  while [[ "$1" != -- ]]; do
    jars+=("$1")
    shift
  done
  shift
  for argument in "$@"; do
    if [[ "${argument}" == --help || "${argument}" == -h ]]; then
      print_help
      exit 0
    fi
  done
  check_host
  mkdir -p "${ARTIFACTS}"
  { make_environment tools && fetch_jars "${jars[@]}"; } ||
    die "what the lab needs could not be fetched; see the lines above, then run again"
  cd "${ROOT}" || exit
  exec "${ARTIFACTS}/venv-tools/bin/python" -m "labs.${module}" "$@"
}
