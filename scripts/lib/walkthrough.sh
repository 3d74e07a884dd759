# shellcheck shell=bash
# Functions of a walkthrough on the stack: numbered steps, the command behind each, and a pause for a class.
# Sourced; leaves the shell in the project's folder, with the settings of services/environment.sh.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source services/environment.sh
# shellcheck disable=SC2034  # walkthroughs read it
HOME_FOLDER="${STACK_HOME:-${ROOT}}"
STEP=0
PAUSE=false

# Messages go to stderr: stdout carries results only.
say() {
  printf '%s\n' "$*" >&2
}

# die MESSAGE [EXIT CODE]: one line that names the thing, the cause and the next step.
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit "${2:-2}"
}

# parse_walkthrough FLAG...: the flags of every walkthrough.
parse_walkthrough() {
  while (($#)); do
    case "$1" in
      --help | -h)
        sed -n '2,/^[^#]/{ /^#/{ s/^# \{0,1\}//; p; }; }' "$0"
        exit 0
        ;;
      --pause) PAUSE=true ;;
      --backend)
        [[ $# -ge 2 ]] || die "--backend needs a value: compose or local"
        # The scripts that the walkthrough calls use the same backend.
        export STACK_BACKEND="$2"
        shift
        ;;
      --backend=*) export STACK_BACKEND="${1#*=}" ;;
      *) die "unknown argument '$1'; see --help" ;;
    esac
    shift
  done
  if [[ "${PAUSE}" == true && ! -t 0 ]]; then
    die "--pause waits for Enter, and there is no terminal to read it from"
  fi
}

# step TITLE: the next step; with --pause it waits for Enter first.
step() {
  STEP=$((STEP + 1))
  if [[ "${PAUSE}" == true ]]; then
    printf '\n   Enter for step %d: %s ' "${STEP}" "$1" >&2
    read -r </dev/tty
  fi
  printf '\n== %d. %s\n' "${STEP}" "$1" >&2
}

# run COMMAND...: shows the command as a user would type it, then runs it.
run() {
  printf '   $ %s\n' "$*" >&2
  "$@"
}

# indent: indents the output of a command.
indent() {
  sed 's/^/   /' >&2
}

# until_true SECONDS WHAT COMMAND...: returns as soon as the command succeeds.
until_true() {
  local seconds="$1" what="$2" begin="${SECONDS}"
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= begin + seconds)); then
      die "timed out after ${seconds} s waiting for ${what}; see scripts/status.sh and scripts/logs.sh"
    fi
    sleep 0.3
  done
}

# field NAME: the value of a member of the JSON object on stdin.
field() {
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# json_offsets: turns {"0": 900, "1": 870} on stdin into lines of partition and offset.
json_offsets() {
  python3 -c 'import json, sys
for partition, offset in sorted(json.load(sys.stdin).items(), key=lambda item: int(item[0])):
    print(partition, offset)'
}

# broker_inside: host:port of the broker for a command that scripts/exec.sh runs.
broker_inside() {
  scripts/exec.sh kafka python3 -c 'from contract.settings import Settings; print(Settings().bootstrap)'
}

# end_offsets TOPIC: partition and offset of the next record, one line per partition.
end_offsets() {
  scripts/exec.sh kafka kafka-get-offsets.sh --bootstrap-server "$(broker_inside)" --topic "$1" |
    awk -F : '{ print $2, $3 }' | sort -n
}

# record_count TOPIC: how many records the topic has had.
record_count() {
  end_offsets "$1" | awk '{ sum += $2 } END { print sum + 0 }'
}
