#!/usr/bin/env bash
# Summary: Run a verb of a script with the Python of this machine.
# Usage: scripts/lib/verb.sh SCRIPT VERB [WORD...]
set -euo pipefail
# They change what Python is, and are meant for another program.
unset PYTHONHOME PYTHONINSPECT PYTHONSTARTUP
# The script that is called decides on the clone, and not the folder in which it is called.
[[ -z "${STACK_HOME:-}" || "${STACK_HOME}" == /* ]] || export STACK_HOME="${PWD}/${STACK_HOME}"
run_module='import sys; sys.path[0] = sys.argv.pop(1); import runpy
runpy.run_module("faultline.verbs", run_name="__main__", alter_sys=True)'
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
for python in python3 python; do
  if "${python}" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    export PYTHONPATH="${root}${PYTHONPATH:+:${PYTHONPATH}}"
    exec "${python}" -c "${run_module}" "${root}" "$@"
  fi
done
echo "${1##*/}: Python 3.9 or later was not found on PATH; install it" >&2
exit 2
