#!/usr/bin/env bash
# Summary: Remove the content of folders that a stack owns, when the caller has no permission: scripts/down.sh --wipe.
# Usage: docker/empty.sh FOLDER...
set -euo pipefail
for folder in "$@"; do
  # Without a marker the folder is not ours. Notebooks belong to the user.
  [[ -e "${folder}/.faultline.json" ]] || continue
  find "${folder}" -mindepth 1 -maxdepth 1 ! -name notebooks -exec rm -rf -- {} +
done
