# shellcheck shell=bash
# How a walkthrough speaks and asks: numbered steps, the command behind each, and a pause for a class.

STEP=0
PAUSE="${PAUSE:-false}"

# step TITLE: the next step; with --pause it waits for Enter first.
step() {
  STEP=$((STEP + 1))
  if [[ "${PAUSE}" == true ]]; then
    printf '\n   Enter for step %d: %s ' "${STEP}" "$1" >&2
    read -r </dev/tty
  fi
  printf '\n== %d. %s\n' "${STEP}" "$1" >&2
}

# run COMMAND...: shows the command as a person would type it, then runs it.
run() {
  printf '   $ %s\n' "$*" >&2
  (cd "${ROOT}" && "$@")
}

# indent: sets what a command prints apart from the words around it.
indent() {
  sed 's/^/   /' >&2
}

# end_offsets TOPIC: `partition offset` of the next record of each partition, a line each.
end_offsets() {
  service_exec kafka kafka-get-offsets.sh --bootstrap-server "${KAFKA_SERVICE_ADDRESS}" --topic "$1" |
    awk -F : '{ print $2, $3 }' | sort --numeric-sort
}

# record_count TOPIC: how many records the topic has had.
record_count() {
  end_offsets "$1" | awk '{ sum += $2 } END { print sum + 0 }'
}

# json_offsets: turns {"0": 900, "1": 870} on stdin into the lines of end_offsets.
json_offsets() {
  tr --delete '{}" ' | tr ',' '\n' | tr ':' ' ' | sort --numeric-sort
}
