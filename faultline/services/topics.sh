#!/usr/bin/env bash
# Summary: Create missing topics, once the broker answers.
# Usage: faultline/services/topics.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "${TOOLS_PYTHON:-${ARTIFACTS}/venv-tools/bin/python}" -m faultline.services.kafka.topics
