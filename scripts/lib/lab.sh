# shellcheck shell=bash
# How a walkthrough of labs/ starts: its environment and jars, fetched where they are missing, then the lab itself.

source "$(dirname "${BASH_SOURCE[0]}")/../../services/environment.sh"
source "${ROOT}/scripts/lib/common.sh"
source "${ROOT}/scripts/lib/preflight.sh"
source "${ROOT}/scripts/lib/artifacts.sh"

# run_with_tools JARS... -- MODULE ARGUMENT...: runs a module that needs the tools and these groups of jars.
run_with_tools() {
  local module jars=() argument
  while [[ "$1" != -- ]]; do
    jars+=("$1")
    shift
  done
  module="$2"
  shift 2
  for argument in "$@"; do
    if [[ "${argument}" == --help || "${argument}" == -h ]]; then
      print_help
      exit 0
    fi
  done
  check_host
  mkdir -p "${ARTIFACTS}"
  { make_environment tools && fetch_jars "${jars[@]}"; } ||
    die "what ${module} needs could not be fetched; see the lines above, then run again"
  exec "${ARTIFACTS}/venv-tools/bin/python" -m "${module}" "$@"
}

# run_lab MODULE JARS... -- ARGUMENT...: runs labs.MODULE from the project's folder: its paths are shown from there.
run_lab() {
  local module="labs.$1" jars=()
  shift
  while [[ "$1" != -- ]]; do
    jars+=("$1")
    shift
  done
  shift
  cd "${ROOT}" || exit
  run_with_tools "${jars[@]}" -- "${module}" "$@"
}
