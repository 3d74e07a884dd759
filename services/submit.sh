#!/usr/bin/env bash
# Summary: Submit the Flink job, from the newest retained checkpoint where there is one.
# Usage: services/submit.sh
#
# Run once each time the stack comes up: a job that reads from the earliest offset again would
# write every window a second time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
python="${ARTIFACTS}/venv-flink/bin/python"

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
