#!/usr/bin/env bash
# Summary: Run Prometheus, with the services of the stack as its targets, in the foreground.
# Usage: faultline/services/prometheus.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python3 -m faultline.services.prometheus
