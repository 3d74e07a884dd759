#!/usr/bin/env bash
# Summary: Answer Prometheus with what no engine says of itself, in the foreground.
# Usage: faultline/services/exporter.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "${ROOT}"
exec "${ARTIFACTS}/venv-page/bin/python" -m faultline.probes.exporter
