#!/usr/bin/env bash
# Summary: Remove what is in folders that a stack owns, where the caller outside may not: scripts/down.sh --wipe.
# Usage: docker/empty.sh FOLDER...
set -euo pipefail
for folder in "$@"; do
  # Without a marker it is not ours. Notebooks are what people wrote.
  [[ -e "${folder}/.faultline.json" ]] || continue
  find "${folder}" -mindepth 1 -maxdepth 1 ! -name notebooks -exec rm -rf -- {} +
done
