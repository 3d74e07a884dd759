#!/usr/bin/env bash
# Summary: Submit the Flink job, from the newest retained checkpoint if there is one.
# Usage: faultline/services/submit.sh
#
# Runs once at each start of the stack: a job that reads from the earliest offset again would
# write every window a second time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-flink/bin/python" -m faultline.services.restore --at-start
