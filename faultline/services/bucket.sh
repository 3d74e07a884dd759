#!/usr/bin/env bash
# Summary: Make the bucket of the stack's data, once the object store answers.
# Usage: faultline/services/bucket.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-tools/bin/python" -m faultline.services.store.bucket "$@"
