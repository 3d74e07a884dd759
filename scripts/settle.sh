#!/usr/bin/env bash
# Summary: After the generator has stopped, close every open window and wait until both pipelines have committed all.
# Usage: scripts/settle.sh [--wait SECONDS] [--backend compose|local]
#
# Two closing visits in each partition move event time past the last open window; where nothing is open none is sent.
# --wait SECONDS  how long the pipelines may take (default 120)
# Exit codes: 0 settled, 1 a closing visit was not acknowledged, 2 not settled in time, or something is missing.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/stack.sh"
load_stack "$@"

seconds=120
set -- "${ARGS[@]}"
while (($#)); do
  case "$1" in
    --wait)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || die "--wait needs a number of seconds"
      seconds="$2"
      shift 2
      ;;
    *) die "unknown argument '$1'; see --help" ;;
  esac
done

state="$(service_state generator)"
! in_list "${state}" running paused ||
  die "the generator is ${state}, and its next visits would open windows again; stop it with scripts/generator_stop.sh"
require_running kafka
# What it says is on stderr; the one line on stdout is for the end.
service_exec generator python -m generator.close >/dev/null
tool_run python -m verdict.settled --wait "${seconds}"
