# shellcheck shell=bash
# Backend `compose`: each service a container of docker-compose.yaml, by Compose 1.29 or 2.

source "${LIBRARY}/preflight.sh"
source "${LIBRARY}/backends/compose_containers.sh"

# The broker as a command beside it reaches it.
# shellcheck disable=SC2034  # scripts/consume.sh reads it
KAFKA_SERVICE_ADDRESS="kafka:${KAFKA_CONTAINER_PORT}"

readonly PUBLISHED_PORTS=(KAFKA_PORT FLINK_UI_PORT SPARK_UI_PORT)
# One service for each image: the others of the same image find it built.
readonly BUILT_SERVICES=(kafka generator spark jobmanager)
# Run once and end: their exit code tells whether they did their work.
readonly ONE_SHOTS=(permissions topics submit)
readonly MEMORY_NEEDED_MIB=3072
# All images and the build's layers take 8 GiB.
readonly DISK_FOR_IMAGES_MIB=10240 DISK_FOR_RUN_MIB=1024
readonly UP_LIMIT_SECONDS=300 KILL_LIMIT_SECONDS=10
readonly PROJECT_IN_SERVICE=/faultline

# What containers write belongs to the caller. Root's services run as the image's own user: none runs as root.
STACK_UID="$(id --user)"
STACK_GID="$(id --group)"
if ((STACK_UID == 0)); then
  STACK_UID=1000
  STACK_GID=1000
fi
# A second stack of this clone has another home, and must not take over the containers of the first.
if [[ "${STACK_HOME}" != "${ROOT}" && "${COMPOSE_PROJECT_NAME}" == "$(sed --quiet 's/^COMPOSE_PROJECT_NAME=//p' "${ROOT}/.env")" ]]; then
  COMPOSE_PROJECT_NAME+="-$(printf '%s' "${STACK_HOME}" | sha256sum | cut --characters 1-8)"
fi
export STACK_UID STACK_GID COMPOSE_PROJECT_NAME

# Builds the four images; what did not change comes from the engine's cache.
stack_build() {
  if ! docker image inspect "faultline/spark:${IMAGE_TAG}" >/dev/null 2>&1; then
    check_disk "${ROOT}" "${DISK_FOR_IMAGES_MIB}"
    say "building the images; the first time fetches all that they need ..."
  fi
  "${ROOT}/docker/collect_certs.sh"
  # Without the buildx plugin only the classic builder works, and Compose must be told so.
  if ! docker buildx version >/dev/null 2>&1; then
    export DOCKER_BUILDKIT=0 COMPOSE_DOCKER_CLI_BUILD=0
  fi
  quietly compose build "${BUILT_SERVICES[@]}" || die "the images could not be built; the end of the build's log is above"
}

# stack_has_containers: succeeds while any service of this project runs.
stack_has_containers() {
  [[ -n "$(docker ps --quiet --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME}")" ]]
}

# unready_services [ended]: prints the services that do not do their work, or only those that ended instead.
# Ready is: healthy; for a one shot, and for a generator with a total: ended with exit code 0.
unready_services() {
  local states service status only="${1:-}"
  states="$(container_states)"
  for service in "${ONE_SHOTS[@]}" "${SERVICES[@]}"; do
    status="$(sed --quiet "s/^${service} //p" <<<"${states}")"
    case "${status}" in
      "running "*"(healthy)") continue ;;
      "exited Exited (0) "*) in_list "${service}" "${ONE_SHOTS[@]}" generator && continue ;;
    esac
    [[ "${only}" == ended && "${status}" != exited* && "${status}" != dead* ]] || echo "${service}"
  done
}

stack_is_settled() {
  [[ -z "$(unready_services)" || -n "$(unready_services ended)" ]]
}

# The last words of each service that is not ready, for a start that failed.
explain_timeout() {
  local service
  for service in $(unready_services); do
    printf -- '-- %s (%s), last lines:\n' "${service}" "$(service_state "${service}")"
    # Of a stack trace the causes say enough.
    service_logs "${service}" 60 | grep --invert-match --extended-regexp '^[[:space:]]+(at |\.\.\. )' | tail --lines 12 || true
  done
}

stack_up() {
  mkdir -p "${STACK_HOME}/checkpoints/spark" "${STACK_HOME}/checkpoints/flink" "${STACK_HOME}/output" \
    "${STACK_HOME}/ledger" ||
    die "no folders can be made in ${STACK_HOME}; choose another place for what the stack writes: STACK_HOME=... $(basename "$0")"
  check_memory "${MEMORY_NEEDED_MIB}"
  check_disk "${STACK_HOME}" "${DISK_FOR_RUN_MIB}"
  stack_has_containers || check_ports "${PUBLISHED_PORTS[@]}"
  record_backend
  # Compose waits for each dependency; it reports a port taken meanwhile or a missing network in its own words.
  if ! COMPOSE_LIMIT="${UP_LIMIT_SECONDS}" quietly compose up --detach; then
    explain_timeout >&2
    die "the services could not be started; the reasons are above"
  fi
  wait_for "${UP_LIMIT_SECONDS}" "every service healthy and the Flink job submitted" stack_is_settled ||
    die "the stack did not come up within ${UP_LIMIT_SECONDS} s"
  if [[ -n "$(unready_services)" ]]; then
    explain_timeout >&2
    die "a service ended during the start; its last lines are above"
  fi
}

stack_down() {
  local service
  for service in "${SERVICES[@]}"; do
    # A frozen process does not see SIGTERM.
    [[ "$(service_state "${service}")" != paused ]] || service_resume "${service}"
  done
  local options=(--remove-orphans)
  [[ "${1:-}" != --wipe ]] || options+=(--volumes)
  quietly compose down "${options[@]}" || die "the stack could not be stopped; the reasons are above"
  forget_backend
  if [[ "${1:-}" == --wipe ]]; then
    rm --recursive --force "${STACK_STATE}" "${STACK_HOME}/output" "${STACK_HOME}/ledger" \
      "${STACK_HOME}/checkpoints/spark" "${STACK_HOME}/checkpoints/flink"
  fi
}

service_state() {
  case "$(container_field "$1" '{{.State.Status}}')" in
    running | restarting) echo running ;;
    paused) echo paused ;;
    "") echo absent ;;
    *) echo exited ;;
  esac
}

# Extra arguments are part of the container: a start with others, or without any, makes it anew.
service_start() {
  local service="$1" arguments=""
  shift
  in_list "$(service_state "${service}")" running paused && return 0
  (($# == 0)) || printf -v arguments '%q ' "$@"
  GENERATOR_ARGUMENTS="${arguments}" SPARK_ARGUMENTS="${arguments}" \
    quietly compose up --detach --no-deps --no-build "${service}" ||
    die "service ${service} did not start; see scripts/logs.sh ${service}"
}

service_answers() {
  case "$1" in
    # Docker's own proxy takes connections to a published port before the service does.
    kafka | jobmanager) [[ "$(container_field "$1" '{{.State.Health.Status}}')" == healthy ]] ;;
    *) [[ "$(service_state "$1")" == running ]] ;;
  esac
}

service_stop() {
  case "$(service_state "$1")" in
    running) ;;
    paused) service_resume "$1" ;;
    *) return 0 ;;
  esac
  quietly compose stop "$1" || die "service $1 could not be stopped; the reasons are above"
}

# The whole container: process 1 and with it every process of its namespace.
service_kill() {
  local id
  id="$(container "$1")"
  in_list "$(service_state "$1")" running paused || die "service $1 is not running; start it first (scripts/status.sh shows all)"
  docker kill --signal KILL "${id}" >/dev/null
  wait_for "${KILL_LIMIT_SECONDS}" "the end of $1" service_has_ended "$1"
}

service_has_ended() {
  [[ "$(service_state "$1")" == exited ]]
}

service_pause() {
  docker pause "$(container "$1")" >/dev/null
}

service_resume() {
  docker unpause "$(container "$1")" >/dev/null
}

service_logs() {
  local id
  id="$(container "$1")"
  [[ -z "${id}" ]] || docker logs --tail "${2:-20}" "${id}" 2>&1
}

# Resident bytes of all processes in the container; the page cache, which `docker stats` counts, is not in it.
service_memory() {
  local id
  id="$(container "$1")"
  if ! in_list "$(service_state "$1")" running paused; then
    echo 0
    return 0
  fi
  docker top "${id}" -eo pid,rss | awk 'NR > 1 { sum += $2 } END { print sum * 1024 }'
}

# Without a terminal the command gets no stdin but a pipe that ends with the client, and ends with it:
# `docker exec` alone would leave it running after a Ctrl-C or a timeout.
service_exec() {
  local service="$1" id
  shift
  if [[ "$(service_state "${service}")" != running ]]; then
    one_off "${service}" "$@"
    return
  fi
  id="$(container "${service}")"
  if on_terminal; then
    docker exec --interactive --tty "${id}" docker/run.sh "$@"
  else
    tied docker exec --interactive "${id}" docker/run.sh --tied "$@"
  fi
}

tool_run() {
  docker image inspect "faultline/spark:${IMAGE_TAG}" >/dev/null 2>&1 || stack_build
  one_off tools "$@"
}

path_in_service() {
  local path
  path="$(realpath --canonicalize-missing --no-symlinks "$1")"
  case "${path}/" in
    "${STACK_HOME}"/checkpoints/* | "${STACK_HOME}"/output/*) printf '%s\n' "${PROJECT_IN_SERVICE}${path#"${STACK_HOME}"}" ;;
    "${PROJECT_IN_SERVICE}"/*) printf '%s\n' "${path}" ;;
    *) die "${path} cannot be seen from a container; they see ${STACK_HOME}/checkpoints and ${STACK_HOME}/output" ;;
  esac
}

# Whoever is root here has the tools run as the stack's user, who must be able to write there.
shared_folder() {
  mkdir -p "$1" || die "folder $1 cannot be made; choose another"
  ((EUID != 0)) || chown "${STACK_UID}:${STACK_GID}" "$1"
  realpath "$1"
}

path_on_host() {
  printf '%s\n' "${1/#${PROJECT_IN_SERVICE}\//${STACK_HOME}/}"
}
