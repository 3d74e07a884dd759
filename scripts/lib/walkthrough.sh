# shellcheck shell=bash
# The few functions of a walkthrough on the stack: begin, step, expect, run, fact, prove, judge, finish.
# Sourced; leaves the shell in the project's folder, with the settings of faultline/services/environment.sh.
#
# Steps, commands and facts go to stderr; stdout gets the proven sentences at the end.

[[ -z "${STACK_HOME:-}" || "${STACK_HOME}" == /* ]] || export STACK_HOME="${PWD}/${STACK_HOME}"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source faultline/services/environment.sh
# shellcheck disable=SC2034  # walkthroughs read it
HOME_FOLDER="${STACK_HOME:-${ROOT}}"
# Below it are the engines' checkpoints and outputs; the stack's notes on them are below HOME_FOLDER.
DATA_FOLDER=""
PAUSE=false
STEP=0
FACTS=() RESULT=()
CODE=0
# How the walkthrough found the stack: up, down, or empty when it does not use the stack; and whether its generator ran.
FOUND="" GENERATOR="" BROKER=""
SPOILT=false ENDED=false HELD=false
# A walkthrough's own clean-up, called when it ends early.
CLEAN_UP=true

say() {
  printf '%s\n' "$*" >&2
}

# die MESSAGE [EXIT CODE]: one line that names the thing, the cause and the next step.
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit "${2:-2}"
}

# flags FLAG...: parses the flags of every walkthrough.
flags() {
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
      --profile)
        [[ $# -ge 2 ]] || die "--profile needs a value: cluster"
        export STACK_PROFILE="$2"
        shift
        ;;
      --profile=*) export STACK_PROFILE="${1#*=}" ;;
      *) die "unknown argument '$1'; see --help" ;;
    esac
    shift
  done
  if [[ "${PAUSE}" == true && ! -t 0 ]]; then
    die "--pause waits for Enter, and there is no terminal to read it from"
  fi
  trap leave EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # A terminal that was closed.
  trap 'exit 129' HUP
}

# begin FLAG...: parses the flags of every walkthrough and starts what does not run.
begin() {
  flags "$@"
  step "start the stack"
  local status setting
  status="$(scripts/status.sh --json 2>/dev/null)" || true
  # A reset forgets what was chosen for this stack: exported variables keep it.
  while IFS= read -r setting; do
    [[ -z "${setting}" ]] || export "STACK_${setting}"
  done < <(field chosen <<<"${status}" 2>/dev/null || true)
  load_settings
  # shellcheck disable=SC2153  # load_settings sets it
  DATA_FOLDER="${DATA%/}"
  # An empty variable sets nothing: `disk` stands for it.
  [[ -n "${DATA_FOLDER}" && "${DATA_FOLDER}" != disk ]] || DATA_FOLDER="${HOME_FOLDER}"
  if [[ "$(state_in kafka <<<"${status}" 2>/dev/null)" == running ]]; then
    FOUND=up
    GENERATOR="$(state_in generator <<<"${status}")"
    # Nothing could be proven on an output that is already wrong.
    local code=0
    scripts/verdict.sh all --as-is >/dev/null 2>&1 || code=$?
    if ((code == 1)); then
      # Nothing has changed, so nothing has to be put back.
      ENDED=true
      die "the output of this stack is already wrong (scripts/verdict.sh all); scripts/reset.sh starts clean"
    fi
  else
    FOUND=down
  fi
  run scripts/up.sh
  # A reset also forgets the backend. Status exits with 1 while the job restarts.
  export STACK_BACKEND
  STACK_BACKEND="$({ scripts/status.sh --json 2>/dev/null || true; } | field backend)"
  # host:port of the broker for a command that scripts/exec.sh runs
  BROKER="$(scripts/exec.sh kafka python3 -m faultline.print_setting KAFKA_BOOTSTRAP)"
  scripts/start.sh generator
  # From here on each script also prints the command that it stands for.
  export STACK_SHOW_COMMANDS=1
}

# leave: runs at the end of every walkthrough, also after a failure or Ctrl-C.
leave() {
  local status=$?
  # What is said to a closed terminal fails, and must not end the clean-up.
  trap '' INT TERM HUP
  set +e
  [[ "${ENDED}" == false ]] || return
  unset STACK_SHOW_COMMANDS
  say ""
  say "the walkthrough ended early (exit code ${status})"
  "${CLEAN_UP}" >/dev/null 2>&1 || true
  # A held batch would wait forever.
  [[ "${HELD}" == false ]] || scripts/kill.sh spark || true
  if [[ "${SPOILT}" == true ]]; then
    say "it had spoilt the topics: they are removed"
    scripts/reset.sh || true
    [[ "${FOUND}" != up ]] || scripts/up.sh || true
  elif [[ "${FOUND}" == down ]] && ((status == 129 || status == 130 || status == 143)); then
    say "stopping what it started; checkpoints and outputs stay, scripts/down.sh --wipe removes them"
    scripts/down.sh || true
  elif [[ "${FOUND}" == down && -z "${BROKER}" ]]; then
    say "the stack did not start; the reason is above"
  elif [[ "${FOUND}" == down ]]; then
    say "the stack stays up to look at (scripts/status.sh, scripts/logs.sh); stop it with: scripts/down.sh"
  elif [[ "${FOUND}" == up ]]; then
    say "starting again what it stopped"
    scripts/up.sh || true
    [[ "${GENERATOR}" == running ]] || scripts/generator_stop.sh || true
  fi
  # Exit code 1 is only for a sentence that is not proven.
  ((status != 1)) || exit 2
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

# expect TEXT: what one should see.
expect() {
  say "   expect: $*"
}

# show COMMAND...: prints the command as a person types it.
show() {
  {
    printf '   $'
    printf ' %q' "$@"
    printf '\n'
  } >&2
}

# run COMMAND...: shows the command, then runs it.
run() {
  show "$@"
  "$@"
}

# indent: indents the output of a command.
indent() {
  sed 's/^/   /' >&2
}

# fact WHAT SEEN EXPECTED: ok when both are equal, and not empty, as a value is that could not be read.
fact() {
  if [[ -n "$2" && "$2" == "$3" ]]; then
    keep "  ok      $1: $2"
  else
    keep "  FAILED  $1: ${2:-no value}, expected ${3:-a value}"
  fi
}

# fact_is WHAT NUMBER OPERATOR NUMBER: ok when the comparison holds; operators: -gt, -ge, -lt, -le.
fact_is() {
  if test "$2" "$3" "$4"; then
    keep "  ok      $1: $2"
  else
    keep "  FAILED  $1: ${2:-no value}, expected $3 ${4:-a value}"
  fi
}

keep() {
  FACTS+=("$1")
  say " $1"
}

# prove SENTENCE: proven when there are facts since the last sentence, and all of them are ok.
prove() {
  local head=PROVEN line
  ((${#FACTS[@]})) || head="NOT PROVEN"
  for line in ${FACTS[@]+"${FACTS[@]}"}; do
    [[ "${line}" == "  ok "* ]] || head="NOT PROVEN"
  done
  [[ "${head}" == PROVEN ]] || CODE=1
  RESULT+=("${head}  $1" ${FACTS[@]+"${FACTS[@]}"})
  FACTS=()
  say "   -> ${head}: $1"
}

# settle: no window is open afterwards, and both pipelines have committed everything.
settle() {
  run scripts/generator_stop.sh
  run scripts/settle.sh --wait 180 | indent
}

# judge PIPELINE: the verdict goes to VERDICT, as JSON.
judge() {
  VERDICT="$(run scripts/verdict.sh "$1" --json)" || true
  [[ -n "${VERDICT}" ]] || die "there is no verdict; the reason is above"
}

# judged NAME: a figure of the verdict.
judged() {
  field "$1" <<<"${VERDICT}"
}

# spoil WHY: from here on the output is wrong on purpose, so that the end has to remove it.
spoil() {
  [[ -z "${STACK_STORE_ENDPOINT:-}" ]] ||
    die "it ends in scripts/reset.sh, which cannot remove what is in the store at ${STACK_STORE_ENDPOINT}; run it on a stack with its own store"
  SPOILT=true
  say "   note: $*; so this walkthrough ends in scripts/reset.sh, which removes topics, checkpoints and outputs"
}

# finish: leaves the stack as it was found, prints the sentences, and ends with their exit code or a worse one.
finish() {
  local worse="${1:-0}"
  ((worse <= CODE)) || CODE="${worse}"
  unset STACK_SHOW_COMMANDS
  if [[ "${SPOILT}" == true ]]; then
    step "leave a clean stack"
    run scripts/reset.sh
    [[ "${FOUND}" != up ]] || run scripts/up.sh
    [[ "${FOUND}" != up || "${GENERATOR}" == running ]] || run scripts/generator_stop.sh
  elif [[ "${GENERATOR}" == running ]]; then
    step "leave the stack as it was: the generator ran"
    run scripts/generator_start.sh
  elif [[ "${FOUND}" == up ]]; then
    step "leave the stack as it was: the generator did not run"
    run scripts/generator_stop.sh
  fi
  ENDED=true
  printf '%s\n' ${RESULT[@]+"${RESULT[@]}"}
  say ""
  [[ -z "${FOUND}" || ("${SPOILT}" == true && "${FOUND}" == down) ]] || say "the stack stays up; stop it with: scripts/down.sh"
  exit "${CODE}"
}

# until_true SECONDS WHAT COMMAND...: returns as soon as the command succeeds.
until_true() {
  local seconds="$1" what="$2" begin="${SECONDS}" next=5
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= begin + seconds)); then
      die "timed out after ${seconds} s waiting for ${what}; see scripts/status.sh and scripts/logs.sh"
    fi
    if ((SECONDS >= begin + next)); then
      say "   waiting for ${what}: ${next} s"
      next=$((next + 5))
    fi
    sleep 0.3
  done
}

# wait_for_checkpoints N: the job has completed N more; prints its status as JSON.
wait_for_checkpoints() {
  local wanted
  wanted=$(($(scripts/flink_status.sh | field checkpoints_completed) + $1))
  run scripts/flink_status.sh --wait-checkpoints "${wanted}" --wait-seconds 180
}

# state_in SERVICE: its state by the JSON of scripts/status.sh on stdin.
state_in() {
  field services service="$1" state
}

# field STEP...: a member of the JSON on stdin; see faultline/formats/member.py.
field() {
  python3 -m faultline.formats.member "$@"
}

# offsets_in CHECKPOINT: where a restored job reads on in each partition: `latest`, chk-N or a path.
offsets_in() {
  local checkpoint
  checkpoint="$(scripts/exec.sh jobmanager python -m faultline.inspector.flink resolve "$1")"
  scripts/exec.sh jobmanager python -m faultline.inspector.flink offsets "${checkpoint}" | field |
    awk -F = '{ printf "%spartition %s offset %s", comma, $1, $2; comma = ", " } END { print "" }'
}

# stop_with_savepoint: ends the running job with a savepoint, which it prints.
stop_with_savepoint() {
  local data job_id savepoint
  data="$(scripts/exec.sh jobmanager python -m faultline.print_setting DATA)"
  job_id="$(scripts/flink_status.sh | field job_id)"
  savepoint="$(run scripts/exec.sh jobmanager flink stop --savepointPath "${data}/checkpoints/flink/savepoints" "${job_id}" |
    sed -n 's/^Savepoint completed. Path: //p')"
  [[ -n "${savepoint}" ]] || die "Flink made no savepoint; see scripts/logs.sh jobmanager"
  savepoint="${savepoint#file:}"
  say "   ${savepoint}"
  echo "${savepoint}"
}

# taskmanagers: the names of the stack's TaskManagers, a line each.
taskmanagers() {
  local number
  echo taskmanager
  for ((number = 2; number <= FLINK_TASKMANAGERS; number++)); do
    echo "taskmanager-${number}"
  done
}

# kill_taskmanagers: kills every TaskManager, so that no task is left to restart the job on.
kill_taskmanagers() {
  local name
  for name in $(taskmanagers); do
    run scripts/kill.sh "${name}"
  done
}

# start_taskmanagers: starts every TaskManager that does not run.
start_taskmanagers() {
  local name
  for name in $(taskmanagers); do
    run scripts/start.sh "${name}"
  done
}

# offsets_read: where the newest run of the job began to read in each partition, by Flink's own log.
offsets_read() {
  python3 -m faultline.stack.began
}

# record_count TOPIC: how many records the topic has had.
record_count() {
  scripts/exec.sh kafka kafka-get-offsets.sh --bootstrap-server "${BROKER}" --topic "$1" |
    awk -F : '{ sum += $3 } END { print sum + 0 }'
}

# has_arrived TOPIC COUNT: whether the topic has had so many records.
has_arrived() {
  (($(record_count "$1") >= $2))
}

# committed CHECKPOINT BATCH: whether Spark has committed the batch.
committed() {
  local files
  # Not a pipe: what cannot be listed is not missing.
  files="$(scripts/files.sh "$1")" || die "$1 cannot be listed"
  grep -q -e " commits/$2\$" <<<"${files}"
}

# spark_says TEXT: whether the synchronizer has logged it.
spark_says() {
  # Reads to the end: a closed pipe would fail the first command.
  scripts/logs.sh spark 200 | grep -F -e "$1" >/dev/null
}

# range_promised CHECKPOINT: what a restart of the synchronizer reads again, by the files of the checkpoint.
range_promised() {
  # It also fails for a problem that is no matter here.
  { scripts/inspect.sh "$1" --no-lag --last 1 --json 2>/dev/null || true; } | field restart partitions '*' |
    awk -F = '{ part[$1] = $2 }
      $1 == "topic" { printf "%s%s-%s [%s, %s)", comma, $2, part["partition"], part["start"], part["end"]; comma = ", " }
      END { print "" }'
}

# range_rerun BATCH: what Spark read when it ran the batch again, by the log of the synchronizer.
range_rerun() {
  scripts/logs.sh spark 200 | sed -n "s/.*batch $1 (re-run[^)]*): \(.*\), [0-9]* rows, .*/\1/p" | tail -n 1
}

# spark_application [PART]: the running application by Spark's own page, or a part of it such as `executors`, as JSON.
# shellcheck disable=SC2120  # without a part it is the whole
spark_application() {
  scripts/exec.sh spark python -m faultline.probes.spark_application "$@"
}

# application: the id that Spark gave to the run of the synchronizer.
application() {
  # shellcheck disable=SC2119
  spark_application | field id
}

# engines: the run of each engine; a restart of one makes another.
engines() {
  local job
  job="$(scripts/flink_status.sh)"
  echo "job $(field job_id <<<"${job}"), restarts $(field restarts <<<"${job}"), application $(application)"
}

# windows: how many committed windows the topic has.
windows() {
  windows_that_end_after 0
}

# windows_since CHECKPOINT: how many windows were committed after it: their end is later than the watermark in it.
windows_since() {
  windows_that_end_after "$(scripts/inspect.sh "$1" --json | field operators '*' watermark | sort -n | sed -n '/^0$/!{ p; q; }')"
}

# windows_that_end_after MILLISECONDS: committed windows that are not over at this watermark.
windows_that_end_after() {
  scripts/exec.sh spark python -m faultline.probes.windows_after "$1"
}
