# shellcheck shell=bash
# What every script needs: words for people, conditions to wait on, help made from the header.

# Words go to stderr: stdout carries results only.
say() {
  printf '%s\n' "$*" >&2
}

# A heading between the steps of a walkthrough.
heading() {
  printf '\n== %s\n' "$*" >&2
}

# die MESSAGE [EXIT CODE]: one line that names the thing, the cause and the next step.
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit "${2:-2}"
}

# Prints the Summary and Usage of the calling script, from its header.
print_help() {
  sed --quiet --expression '/^# Summary:/,/^[^#]/{ /^#/{ s/^# \{0,1\}//; p } }' "$0"
}

# wait_for SECONDS DESCRIPTION COMMAND...: returns as soon as the command succeeds.
# A timeout says what was awaited; the function `explain_timeout`, where defined, shows why.
wait_for() {
  local seconds="$1" description="$2"
  shift 2
  local deadline=$((SECONDS + seconds))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)); then
      say "waited ${seconds} s in vain for: ${description}"
      if declare -F explain_timeout >/dev/null; then
        explain_timeout >&2 || true
      fi
      return 1
    fi
    sleep 0.3
  done
}

# port_taken PORT: succeeds when something listens on the stack's address.
port_taken() {
  (exec 3<>"/dev/tcp/${BIND_ADDRESS}/$1") 2>/dev/null
}

# in_list WORD LIST...: succeeds when the word is one of the list.
in_list() {
  local word="$1" entry
  shift
  for entry in "$@"; do
    [[ "${entry}" == "${word}" ]] && return 0
  done
  return 1
}
