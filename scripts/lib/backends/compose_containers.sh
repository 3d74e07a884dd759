# shellcheck shell=bash
# What backend `compose` asks of Docker and Compose: containers by their labels, commands in them.
# Containers are found by the labels that Compose gives them: a look at one takes no Compose, which is slow.

# compose ARGUMENT...: Compose on this project, whichever of the two is installed.
compose() {
  local program=(docker compose)
  if ! docker compose version >/dev/null 2>&1; then
    command -v docker-compose >/dev/null || die "neither 'docker compose' nor 'docker-compose' is installed; install one, or try --backend local"
    program=(docker-compose)
  fi
  ${COMPOSE_LIMIT:+timeout --foreground "${COMPOSE_LIMIT}"} "${program[@]}" \
    --project-directory "${ROOT}" --file "${ROOT}/docker-compose.yaml" "$@"
}

# quietly COMMAND...: shows what a command says only when it fails; Compose says a lot when all is well.
quietly() {
  local log status=0
  log="$(mktemp)"
  tell_progress "${log}" &
  "$@" >"${log}" 2>&1 || status=$?
  ((status == 0)) || grep --invert-match --extended-regexp '^((Creating|Starting|Recreating|Stopping|Removing) .*(\.\.\.|done)|Encountered errors.*|)$' "${log}" | tail --lines 30 >&2 || true
  rm --force "${log}"
  return "${status}"
}

# tell_progress LOG: while LOG is there, says every 10 s which step was begun last: of a build, or of Compose.
tell_progress() {
  local log="$1" seconds=0 step
  while sleep 1 && [[ -e "${log}" ]] && kill -0 "$$" 2>/dev/null; do
    ((++seconds % 10 == 0)) || continue
    step="$(grep --extended-regexp '^(Step [0-9]|#[0-9]+ \[|(Creating|Starting|Stopping|Removing) | *Container )' "${log}" 2>/dev/null | tail --lines 1)" || true
    say "   ${seconds} s: ${step:0:100}"
  done
}

# container SERVICE: prints the id of its container; nothing when there is none.
container() {
  docker ps --all --quiet --latest \
    --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME}" \
    --filter "label=com.docker.compose.service=$1" \
    --filter label=com.docker.compose.oneoff=False
}

# container_field SERVICE FORMAT: prints what `docker inspect` says; nothing when there is no container.
container_field() {
  local id
  id="$(container "$1")"
  [[ -z "${id}" ]] || docker inspect --format "$2" "${id}" 2>/dev/null || true
}

# Prints `SERVICE STATE STATUS` of each container, where STATUS is as in `Up 5 seconds (healthy)` or `Exited (0) ...`.
container_states() {
  docker ps --all --no-trunc --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME}" \
    --filter label=com.docker.compose.oneoff=False \
    --format '{{.Label "com.docker.compose.service"}} {{.State}} {{.Status}}'
}

# on_terminal: a person sits at all three ends; else stdout carries results, which a terminal would mix with stderr.
on_terminal() {
  [[ -t 0 && -t 1 && -t 2 ]]
}

# one_off SERVICE COMMAND...: a container of its own for one command, removed at its end.
one_off() {
  local service="$1" folder volumes=()
  shift
  for folder in "${TOOL_FOLDERS[@]}"; do
    volumes+=(--volume "${folder}:${folder}")
  done
  if on_terminal; then
    compose run --rm --no-deps "${volumes[@]}" "${service}" "$@"
  else
    # On the command's stderr Compose 1.29 announces the container, and at the end prints the exit code.
    {
      compose run --rm --no-deps -T "${volumes[@]}" "${service}" "$@" </dev/null 2>&1 >&3 |
        sed --unbuffered --expression '/^Creating .*_run \.\.\. /d' --expression '${/^[0-9]\{1,3\}$/d}' >&2
    } 3>&1
  fi
}

# tied COMMAND...: runs it with a stdin on which nothing ever comes, open as long as the command lives.
tied() {
  local folder status=0
  folder="$(mktemp --directory)"
  mkfifo "${folder}/open"
  "$@" <>"${folder}/open" || status=$?
  rm --recursive --force "${folder}"
  return "${status}"
}
