#!/usr/bin/env bash
# Summary: Run the object store (SeaweedFS) in the foreground.
# Usage: faultline/services/store.sh [--data FOLDER] [--metrics-port PORT]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "${ARTIFACTS}/venv-store/bin/python" -m faultline.services.store.start "$@"
