#!/usr/bin/env bash
# Summary: Make the mounted folders writable for the user of the other services.
# Usage: docker/permissions.sh UID GID FOLDER...
#
# The one service that runs as root: an engine creates missing mount points as root, and a clone may belong to
# someone else than STACK_UID. Only the folders themselves are opened, never what is in them.
set -euo pipefail

uid="$1" gid="$2"
shift 2
as_user() { setpriv --reuid="${uid}" --regid="${gid}" --clear-groups -- "$@" 2>/dev/null; }

for folder in "$@"; do
  as_user mkdir -p "${folder}" || mkdir -p "${folder}"
  if ! as_user test -w "${folder}"; then
    chmod 0777 "${folder}"
    echo "permissions: ${folder} is now writable for uid ${uid}" >&2
  fi
done
