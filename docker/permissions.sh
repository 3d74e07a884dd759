#!/usr/bin/env bash
# Summary: Make sure that the mounted folders belong to this stack and can be written by its user.
# Usage: docker/permissions.sh UID GID PROJECT BROKERS [DATA]
#
# The only service that runs as root, since an engine creates missing mount points as root. A folder with files of
# another user or of another stack is never changed. Markers are as faultline/stack/home.py writes them.
set -euo pipefail

uid="$1" gid="$2" project="$3" brokers="$4" data="${5:-}"
data="${data%"${data##*[!/]}"}"
[[ "${data}" != disk ]] || data=""
layout=2
as_user() { setpriv --reuid="${uid}" --regid="${gid}" --clear-groups -- "$@"; }

refuse() {
  echo "permissions: $*" >&2
  exit 1
}

# stranger FOLDER NAME...: a file in it besides those of a clone and these.
stranger() {
  local entry name
  while IFS= read -r entry; do
    for name in README.md .gitignore "${@:2}"; do
      [[ "${entry##*/}" != "${name}" ]] || continue 2
    done
    echo "${entry##*/}"
    return
  done < <(find "$1" -mindepth 1 -maxdepth 1)
}

# may_be_given FOLDER: root made it, and it has only files that a clone or an engine puts there.
may_be_given() {
  [[ "$(stat --format %u "$1")" == 0 && -z "$(stranger "$1" .faultline.json spark flink)" ]]
}

cd /faultline
for folder in checkpoints checkpoints/spark checkpoints/flink output ledger store; do
  as_user mkdir -p "${folder}" 2>/dev/null || mkdir -p "${folder}"
  if ! as_user test -w "${folder}"; then
    may_be_given "${folder}" ||
      refuse "${folder} belongs to uid $(stat --format %u "${folder}"), the services run as uid ${uid};" \
        "start with scripts/up.sh, or set STACK_UID and STACK_GID in .env"
    chown "${uid}:${gid}" "${folder}"
  fi
  [[ "${folder}" == checkpoints ]] && continue
  marker="${folder}/.faultline.json"
  if [[ ! -e "${marker}" ]]; then
    # Notebooks are a person's, the others of programs that need no stack.
    spared=()
    [[ "${folder}" != output ]] || spared=(notebooks labs pipelines)
    file="$(stranger "${folder}" "${spared[@]}")"
    [[ -z "${file}" ]] ||
      refuse "${folder} has files of an older version or of another program (${file}); move them away, then start again"
    # shellcheck disable=SC2016  # the inner shell expands it
    as_user sh -c 'printf "%s\n" "$2" >"$1"' sh "${marker}" \
      "{\"stack\": \"${project}\", \"home\": \"\", \"project\": \"${project}\", \"layout\": ${layout}, \"backend\": \"compose\", \"brokers\": ${brokers}, \"data\": \"${data}\", \"profile\": \"\"}"
  elif ! grep --quiet "\"backend\": \"compose\"" "${marker}" || ! grep --quiet "\"layout\": ${layout}," "${marker}"; then
    refuse "${folder} belongs to a stack whose topics are not in a container ($(<"${marker}"));" \
      "start it with scripts/up.sh, or end it with scripts/down.sh --wipe"
  elif ! grep --quiet "\"project\": \"${project}\"" "${marker}"; then
    refuse "${folder} belongs to another stack ($(<"${marker}")), whose topics are not in project ${project};" \
      "start it with scripts/up.sh, or set COMPOSE_PROJECT_NAME to its project"
  else
    theirs="$(sed -n 's/.*"brokers": \([0-9]*\).*/\1/p' "${marker}")"
    [[ "${theirs:-1}" == "${brokers}" ]] ||
      refuse "the topics of ${folder} are for KAFKA_BROKERS=${theirs:-1}, not ${brokers}; start with that number"
    theirs="$(sed -n 's/.*"data": "\([^"]*\)".*/\1/p' "${marker}")"
    [[ "${theirs}" == "${data}" ]] ||
      refuse "the topics of ${folder} have their checkpoints in '${theirs}', not in '${data}'; start with that DATA"
  fi
done
