#!/usr/bin/env bash
# Summary: Run a command in a container; every service and every tool runs this way.
# Usage: docker/run.sh [--tied] COMMAND [ARGUMENT...]
#
# Entry point of the images; scripts also call it with `docker exec` (which ignores the entry point).
#   --tied  end the command when stdin ends, that is when the client has ended: `docker exec` itself
#           leaves the command running in the container after a Ctrl-C.
set -euo pipefail

# Hadoop's login, in Spark and Flink, fails for a uid without a name. The image names uid 1000; others get one here.
if ! getent passwd "$(id --user)" >/dev/null; then
  names="/tmp/nss-wrapper-$(id --user)"
  if [[ ! -f "${names}.group" ]]; then
    echo "faultline:x:$(id --user):$(id --group):faultline:/tmp:/bin/bash" >"${names}.passwd"
    echo "faultline:x:$(id --group):" >"${names}.group"
  fi
  export NSS_WRAPPER_PASSWD="${names}.passwd" NSS_WRAPPER_GROUP="${names}.group"
  export LD_PRELOAD="libnss_wrapper.so${LD_PRELOAD:+:${LD_PRELOAD}}"
fi

if [[ "${1:-}" != --tied ]]; then
  exec "$@"
fi
shift
exec 3<&0
"$@" </dev/null 3<&- &
command=$!
{
  while read -r -u 3 _; do :; done
  kill -TERM "${command}"
} >/dev/null 2>&1 &
watcher=$!
trap 'kill -TERM "${command}" 2>/dev/null' TERM INT
status=0
wait "${command}" || status=$?
kill "${watcher}" 2>/dev/null || true
exit "${status}"
