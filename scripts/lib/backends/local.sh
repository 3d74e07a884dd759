# shellcheck shell=bash
# Backend `local`: the pinned artifacts as processes of this machine, kept by supervisord.
# Each service is a process group of its own, so that a signal also reaches the JVM and Python children.

source "${LIBRARY}/preflight.sh"
source "${LIBRARY}/artifacts.sh"

SUPERVISOR_HOME="${STACK_STATE}/supervisor"
SUPERVISOR_CONFIG="${SUPERVISOR_HOME}/supervisord.conf"
SERVICE_LOGS="${STACK_STATE}/logs"
# The broker as a command beside it reaches it.
# shellcheck disable=SC2034  # the scripts that call Kafka's tools read it
KAFKA_SERVICE_ADDRESS="${KAFKA_BOOTSTRAP}"

readonly LOCAL_PORTS=(KAFKA_PORT KAFKA_CONTAINER_PORT KAFKA_CONTROLLER_PORT FLINK_UI_PORT FLINK_RPC_PORT SPARK_UI_PORT)
# Resident memory of all services is under 3 GiB; measured by scripts/status.sh.
readonly MEMORY_NEEDED_MIB=3072
# Both environments and the jars take about 2 GiB, and as much again while they are unpacked.
readonly DISK_FOR_ARTIFACTS_MIB=5120 DISK_FOR_RUN_MIB=1024

tools_python() {
  "${ARTIFACTS}/venv-tools/bin/python" "$@"
}

stack_build() {
  check_host
  if [[ ! -d "${ARTIFACTS}/venv-flink" ]]; then
    check_disk "${ROOT}" "${DISK_FOR_ARTIFACTS_MIB}"
  fi
  make_artifacts
}

# One [program] a service: no automatic restart (a kill stays a kill). SIGTERM goes to the service alone,
# since a JVM that gets it beside its Python parent would end in the middle of a micro-batch.
write_supervisor_config() {
  local service
  # A socket path may have about 100 characters: it lies in the system's folder for temporary files.
  local socket
  socket="$(supervisor_socket)"
  mkdir -p "${SUPERVISOR_HOME}" "${SERVICE_LOGS}" "${STACK_STATE}/arguments"
  {
    printf '[supervisord]\nlogfile=%s/supervisord.log\npidfile=%s/supervisord.pid\n' "${SUPERVISOR_HOME}" "${SUPERVISOR_HOME}"
    printf 'childlogdir=%s\nsilent=true\nminfds=1024\n' "${SERVICE_LOGS}"
    printf '[unix_http_server]\nfile=%s\nchmod=0700\n' "${socket}"
    printf '[rpcinterface:supervisor]\n'
    printf 'supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n'
    printf '[supervisorctl]\nserverurl=unix://%s\n' "${socket}"
    for service in "${SERVICES[@]}"; do
      printf '[program:%s]\ncommand=%s/backends/local_service.sh %s\ndirectory=%s\n' \
        "${service}" "${LIBRARY}" "${service}" "${ROOT}"
      printf 'autostart=false\nautorestart=false\nstartsecs=0\nstopsignal=TERM\nstopasgroup=false\nkillasgroup=true\n'
      printf 'stopwaitsecs=60\nredirect_stderr=true\nstdout_logfile=%s/%s.log\nstdout_logfile_maxbytes=50MB\nstdout_logfile_backups=1\n' \
        "${SERVICE_LOGS}" "${service}"
    done
  } >"${SUPERVISOR_CONFIG}"
}

supervisor_socket() {
  printf '%s/faultline-%s.sock' "${TMPDIR:-/tmp}" "$(printf '%s' "${STACK_STATE}" | sha256sum | cut --characters 1-16)"
}

supervisor_alive() {
  [[ -f "${SUPERVISOR_HOME}/supervisord.pid" ]] && kill -0 "$(<"${SUPERVISOR_HOME}/supervisord.pid")" 2>/dev/null
}

supervisorctl() {
  "${ARTIFACTS}/venv-tools/bin/supervisorctl" -c "${SUPERVISOR_CONFIG}" "$@"
}

start_supervisor() {
  supervisor_alive && return 0
  write_supervisor_config
  "${ARTIFACTS}/venv-tools/bin/supervisord" -c "${SUPERVISOR_CONFIG}" >&2
  wait_for 15 "supervisord" supervisorctl avail
}

# Sends a signal to the whole process group of a service.
signal_group() {
  local pid
  pid="$(service_pid "$2")"
  [[ -n "${pid}" ]] || die "service $2 is not running; start it first (scripts/status.sh shows all)"
  kill "-$1" -- "-${pid}"
}

# Prints the process id of a running service, or nothing.
service_pid() {
  local pid
  supervisor_alive || return 0
  pid="$(supervisorctl pid "$1" 2>/dev/null || true)"
  [[ "${pid}" =~ ^[1-9][0-9]*$ ]] && printf '%s\n' "${pid}"
  return 0
}

service_state() {
  local pid
  supervisor_alive || {
    echo absent
    return 0
  }
  pid="$(service_pid "$1")"
  if [[ -z "${pid}" ]]; then
    [[ -s "${SERVICE_LOGS}/$1.log" ]] && echo exited || echo absent
  elif [[ "$(ps -o state= -p "${pid}" 2>/dev/null)" == T* ]]; then
    echo paused
  else
    echo running
  fi
}

service_answers() {
  case "$1" in
    kafka) port_taken "${KAFKA_PORT}" ;;
    jobmanager) port_taken "${FLINK_UI_PORT}" ;;
    *) [[ "$(service_state "$1")" == running ]] ;;
  esac
}

service_start() {
  local service="$1"
  shift
  start_supervisor
  [[ -n "$(service_pid "${service}")" ]] && return 0
  printf '%s\n' "$@" >"${STACK_STATE}/arguments/${service}"
  supervisorctl start "${service}" >&2 || die "service ${service} did not start; see scripts/logs.sh ${service}"
}

service_stop() {
  [[ -n "$(service_pid "$1")" ]] || return 0
  [[ "$(service_state "$1")" == paused ]] && service_resume "$1"
  supervisorctl stop "$1" >&2
}

service_kill() {
  signal_group KILL "$1"
  wait_for 10 "the end of ${1}" service_has_ended "$1"
}

service_has_ended() {
  [[ -z "$(service_pid "$1")" ]]
}

service_pause() {
  signal_group STOP "$1"
}

service_resume() {
  signal_group CONT "$1"
}

service_logs() {
  local log="${SERVICE_LOGS}/$1.log"
  [[ -f "${log}" ]] || return 0
  tail --lines "${2:-20}" "${log}"
}

service_memory() {
  local pid
  pid="$(service_pid "$1")"
  [[ -n "${pid}" ]] || {
    echo 0
    return 0
  }
  ps -e -o pgid=,rss= | awk -v group="${pid}" '$1 == group { sum += $2 } END { print sum * 1024 }'
}

service_exec() {
  local service="$1" environment=tools
  shift
  [[ "${service}" == jobmanager || "${service}" == taskmanager ]] && environment=flink
  (cd "${ROOT}" && PATH="${ARTIFACTS}/venv-${environment}/bin:${PATH}" "$@")
}

tool_run() {
  [[ -x "${ARTIFACTS}/venv-tools/bin/python" ]] || stack_build
  (cd "${ROOT}" && PATH="${ARTIFACTS}/venv-tools/bin:${PATH}" "$@")
}

path_in_service() {
  realpath --canonicalize-missing "$1"
}

shared_folder() {
  mkdir -p "$1" || die "folder $1 cannot be made; choose another"
  realpath "$1"
}

path_on_host() {
  printf '%s\n' "$1"
}

# The last words of each service that has ended, for a start that failed.
explain_timeout() {
  local service
  for service in "${SERVICES[@]}"; do
    if [[ "$(service_state "${service}")" != running ]]; then
      printf -- '-- %s (%s), last lines:\n' "${service}" "$(service_state "${service}")"
      service_logs "${service}" 8
    fi
  done
}

stack_up() {
  local service ended=()
  mkdir -p "${STACK_HOME}"
  check_memory "${MEMORY_NEEDED_MIB}"
  check_disk "${STACK_HOME}" "${DISK_FOR_RUN_MIB}"
  if ! supervisor_alive; then
    check_ports "${LOCAL_PORTS[@]}"
  fi
  mkdir -p "${STACK_HOME}/checkpoints/spark" "${STACK_HOME}/checkpoints/flink" "${STACK_HOME}/output" \
    "${STACK_HOME}/ledger"
  start_supervisor
  record_backend
  # Flink's cluster needs no broker to start: it comes up meanwhile.
  service_start kafka
  service_start jobmanager
  service_start taskmanager
  wait_for 60 "the broker on ${KAFKA_BOOTSTRAP}" service_answers kafka
  "${ROOT}/services/topics.sh"
  service_start generator
  service_start spark
  wait_for 60 "the Flink cluster at ${FLINK_REST}" service_answers jobmanager
  "${ROOT}/services/submit.sh"
  # A generator with a total may have done its work; its last words tell.
  for service in "${SERVICES[@]}"; do
    [[ "$(service_state "${service}")" != exited ]] || ended+=("${service}")
  done
  if ((${#ended[@]} > 0)); then
    explain_timeout >&2
    [[ "${ended[*]}" == generator ]] || die "a service ended during the start; its last lines are above"
  fi
}

stack_down() {
  local service
  if supervisor_alive; then
    # Against the flow, so that nobody waits for a broker that is gone.
    for service in generator spark taskmanager jobmanager kafka; do
      service_stop "${service}"
    done
    local pid
    pid="$(<"${SUPERVISOR_HOME}/supervisord.pid")"
    supervisorctl shutdown >&2
    wait_for 30 "the end of supervisord" supervisor_has_ended "${pid}"
  fi
  forget_backend
  if [[ "${1:-}" == --wipe ]]; then
    rm --recursive --force "${STACK_STATE}" "${STACK_HOME}/output" "${STACK_HOME}/ledger" \
      "${STACK_HOME}/checkpoints/spark" "${STACK_HOME}/checkpoints/flink"
  fi
}

supervisor_has_ended() {
  ! kill -0 "$1" 2>/dev/null
}
