#!/usr/bin/env bash
# Summary: Succeed when the service of this container is ready; Compose calls it every few seconds.
# Usage: docker/health.sh listens PORT
#        docker/health.sh connected PORT...
#        docker/health.sh says PATH PATTERN HOST:PORT...
#
#   listens    a program of this container listens on the port
#   connected  a TCP connection to one of the ports is established from this container
#   says       one of the hosts answers GET PATH by HTTP with the pattern, a regular expression of bash
#
# PORT is the name of a setting: KAFKA_PORT. Only bash builtins where possible: a check must cost little CPU during a demo
# on two cores.
set -euo pipefail

# number SETTING: prints the port.
number() {
  local name="STACK_$1"
  printf '%d' "${!name}"
}

connected() {
  local ports="" line each
  for each in "$@"; do printf -v ports '%s|%04X' "${ports}" "$(number "${each}")"; done
  while read -r line; do
    # State 01.
    [[ "${line}" =~ ^[0-9]+:\ [0-9A-F]+:[0-9A-F]+\ [0-9A-F]+:(${ports#|})\ 01\  ]] && return 0
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  return 1
}

# fetch HOST PORT PATH: prints the answer.
fetch() {
  local line=""
  exec 3<>"/dev/tcp/$1/$2" || return
  printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$3" "$1" >&3
  while IFS= read -r -t 3 line <&3 || [[ -n "${line}" ]]; do printf '%s\n' "${line}"; done
}

says() {
  local path="$1" pattern="$2" each
  for each in "${@:3}"; do
    [[ "$(fetch "${each%:*}" "$(number "${each##*:}")" "${path}")" =~ ${pattern} ]] && return 0
  done
  return 1
}

case "${1:-}" in
  listens) exec 3<>"/dev/tcp/127.0.0.1/$(number "$2")" ;;
  connected | says) "$@" ;;
  *)
    echo "health: unknown check '${1:-}'; one of listens, connected, says" >&2
    exit 2
    ;;
esac
