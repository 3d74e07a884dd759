#!/usr/bin/env bash
# Summary: Submit the Flink job, from the newest retained checkpoint where there is one.
# Usage: services/submit.sh
#
# Run once each time the stack comes up: a job that reads from the earliest offset again would
# write every window a second time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python="${ARTIFACTS}/venv-flink/bin/python"

# A second `docker-compose up` finds the job at work.
if "${python}" -m flink_job.status 2>/dev/null | grep --quiet --extended-regexp '"state": "(CREATED|INITIALIZING|RUNNING|RESTARTING)"'; then
  echo "submit: the job is active already" >&2
  exit 0
fi

status=0
checkpoint="$("${python}" -m inspector.flink resolve latest)" || status=$?
case "${status}" in
  0)
    offsets="$("${python}" -m inspector.flink offsets "${checkpoint}")"
    echo "submit: the job goes on from ${checkpoint}, offset of each partition: ${offsets}" >&2
    exec "${python}" -m flink_job.submit --from "${checkpoint}"
    ;;
  3)
    echo "submit: no retained checkpoint; the job reads the topic from its earliest offset" >&2
    exec "${python}" -m flink_job.submit
    ;;
  *) exit "${status}" ;;
esac
