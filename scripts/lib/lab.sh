# shellcheck shell=bash
# How a program that needs neither backend starts: its environment and jars, fetched where they are missing, then itself.

source "$(dirname "${BASH_SOURCE[0]}")/../../services/environment.sh"
source "${ROOT}/scripts/lib/common.sh"
source "${ROOT}/scripts/lib/preflight.sh"
source "${ROOT}/scripts/lib/artifacts.sh"

# make_tools WHAT JARS...: the tools environment and these groups of jars; WHAT needs them.
make_tools() {
  local what="$1"
  shift
  check_host
  mkdir -p "${ARTIFACTS}"
  { make_environment tools && fetch_jars "$@" && make_web_guard spark; } ||
    die "what ${what} needs could not be fetched; see the lines above, then run again"
}

# run_with_tools MODULE JARS... -- ARGUMENT...: runs a module that needs the tools and these groups of jars.
run_with_tools() {
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
  make_tools "${module}" "${jars[@]}"
  exec "${ARTIFACTS}/venv-tools/bin/python" -m "${module}" "$@"
}

# run_lab MODULE JARS... -- ARGUMENT...: runs labs.MODULE from the project's folder: its paths are shown from there.
run_lab() {
  local module="labs.$1"
  shift
  cd "${ROOT}" || exit
  run_with_tools "${module}" "$@"
}
