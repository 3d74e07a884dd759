#!/usr/bin/env bash
# Summary: Serve the live page in the foreground; it is read-only.
# Usage: faultline/services/page.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-page/bin/python" -m faultline.page.server
