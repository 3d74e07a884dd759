#!/usr/bin/env bash
# Summary: Run ZooKeeper (one node), which elects Flink's leading JobManager, in the foreground.
# Usage: faultline/services/zookeeper.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

data="${STACK_HOME:-${ROOT}}/.stack/zookeeper"
mkdir -p "${data}"
# ZooKeeper looks for silent JobManagers once per tick.
cat >"${data}/zoo.cfg" <<CONFIGURATION
dataDir=${data}
clientPort=${ZOOKEEPER_PORT}
clientPortAddress=${STACK_FLINK_BIND_HOST:-${BIND_ADDRESS}}
tickTime=$((FLINK_LEADER_TIMEOUT_MS / 4))
admin.enableServer=false
CONFIGURATION

# Its log grows by blocks of 64 KiB, not of 64 MiB.
read -ra flags <<<"${JVM_FLAGS_SHORT} -Xmx64m -Dzookeeper.preAllocSize=64 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
exec java ${flags[@]+"${flags[@]}"} \
  -cp "${ARTIFACTS}/jars/zookeeper/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "${data}/zoo.cfg"
