# shellcheck shell=bash
# The stack as the scripts see it: picks the backend once; nothing else knows which one runs.
#
# Each backend defines the same functions:
#   stack_build                  fetch or build all that the services need
#   stack_up                     start every service in data-flow order, the Flink job submitted
#   stack_down [--wipe]          stop every service; --wipe also removes topics, checkpoints, outputs
#   service_start SERVICE [ARG]  start one service, with extra arguments for it; no-op while it runs
#   service_stop SERVICE         SIGTERM, then wait for the end
#   service_kill SERVICE         SIGKILL to all of its processes
#   service_pause / service_resume SERVICE
#   service_state SERVICE        running, paused, exited or absent
#   service_answers SERVICE      succeeds when it takes requests; one that takes none, while it runs
#   service_logs SERVICE [LINES]
#   service_memory SERVICE       resident bytes
#   service_exec SERVICE CMD...  run a command where the service lives, its tools on PATH
#   tool_run CMD...              run a command of the tools environment (verdict, inspector)
#   path_in_service PATH         where services see a file of the host
#   shared_folder PATH           make a folder that tool_run sees under the same path; list it in TOOL_FOLDERS
#   path_on_host PATH            and back

LIBRARY="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "${LIBRARY}/../../services/environment.sh"
source "${LIBRARY}/common.sh"

# Folders of the host that the next tool_run needs beside the stack's own.
# shellcheck disable=SC2034  # backend compose reads it
TOOL_FOLDERS=()
readonly SERVICES=(kafka generator spark jobmanager taskmanager)

# docker_answers: succeeds when a container engine can be used by this user.
docker_answers() {
  command -v docker >/dev/null && docker info >/dev/null 2>&1
}

# Prints `BACKEND REASON...`; an explicit choice wins, then the stack that is up, then what the machine has.
choose_backend() {
  local recorded="${STACK_STATE}/backend"
  if [[ -n "${STACK_BACKEND:-}" ]]; then
    echo "${STACK_BACKEND} chosen by STACK_BACKEND or --backend"
  elif [[ -f "${recorded}" ]]; then
    echo "$(<"${recorded}") the stack is up on it"
  elif docker_answers; then
    echo "compose a container engine answers"
  else
    echo "local no container engine answers; services run as processes of this machine"
  fi
}

# load_stack ARGUMENT...: handles --help and --backend, leaves the rest in ARGS, and loads the backend.
load_stack() {
  ARGS=()
  while (($#)); do
    case "$1" in
      --help | -h)
        print_help
        exit 0
        ;;
      --backend)
        [[ $# -ge 2 ]] || die "--backend needs a value: compose or local"
        export STACK_BACKEND="$2"
        shift 2
        ;;
      --backend=*)
        export STACK_BACKEND="${1#*=}"
        shift
        ;;
      *)
        ARGS+=("$1")
        shift
        ;;
    esac
  done
  local reason
  read -r BACKEND reason <<<"$(choose_backend)"
  case "${BACKEND}" in
    compose)
      command -v docker >/dev/null || die "backend compose needs Docker, which is not installed here; try --backend local"
      docker_answers || die "backend compose: no Docker engine answers; start Docker, or try --backend local"
      ;;
    local) ;;
    *) die "unknown backend '${BACKEND}'; STACK_BACKEND and --backend take compose or local" ;;
  esac
  BACKEND_REASON="${reason}"
  export BACKEND BACKEND_REASON
  # shellcheck source=/dev/null
  source "${LIBRARY}/backends/${BACKEND}.sh"
}

# require_service NAME: refuses a name that is no service.
require_service() {
  in_list "${1:-}" "${SERVICES[@]}" || die "no service is called '${1:-}'; the services are: ${SERVICES[*]}"
}

# require_running SERVICE...: refuses to go on when one is not running.
require_running() {
  local service state
  for service in "$@"; do
    state="$(service_state "${service}")"
    [[ "${state}" == running ]] ||
      die "service ${service} is ${state}; bring the stack up with scripts/up.sh, or see scripts/status.sh"
  done
}

# require_alive SERVICE: refuses to go on when it is neither running nor paused.
require_alive() {
  local state
  state="$(service_state "$1")"
  [[ "${state}" == running || "${state}" == paused ]] ||
    die "service $1 is ${state}; there is nothing to signal (scripts/status.sh shows all)"
}

# check_flags SERVICE FLAG...: refuses flags that the service would refuse after its start, where nobody looks.
check_flags() {
  local service="$1" module
  shift
  (($# > 0)) || return 0
  case "${service}" in
    generator) module=generator ;;
    spark) module=spark_job.visits_json_synchronizer ;;
    *) die "service ${service} takes no arguments; generator and spark do" ;;
  esac
  tool_run python -m "${module}" --check-flags "$@"
}

# record_backend / forget_backend: which backend holds the stack that is up.
record_backend() {
  mkdir -p "${STACK_STATE}"
  printf '%s\n' "${BACKEND}" >"${STACK_STATE}/backend"
}

forget_backend() {
  rm --force "${STACK_STATE}/backend"
}

stack_is_up() {
  [[ -f "${STACK_STATE}/backend" && "$(service_state kafka)" == running ]]
}
