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

# may_be_given FOLDER: root made it, and it has only files that a clone or an engine puts there.
may_be_given() {
  local entry
  [[ "$(stat --format %u "$1")" == 0 ]] || return 1
  while IFS= read -r entry; do
    case "${entry##*/}" in
      README.md | .gitignore | .faultline.json | spark | flink) ;;
      *) return 1 ;;
    esac
  done < <(find "$1" -mindepth 1 -maxdepth 1)
}

# stranger FOLDER: a file that no stack has written; `notebooks` are a person's, the others of programs without a stack.
stranger() {
  local entry
  while IFS= read -r entry; do
    case "$1/${entry##*/}" in
      */README.md | */.gitignore | output/notebooks | output/labs | output/pipelines) ;;
      *) echo "${entry##*/}" && return ;;
    esac
  done < <(find "$1" -mindepth 1 -maxdepth 1)
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
    file="$(stranger "${folder}")"
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
