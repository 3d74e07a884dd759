#!/usr/bin/env bash
# Summary: Run a command in a service's container, or in its environment on this machine.
# Usage: scripts/exec.sh SERVICE COMMAND [ARGUMENT...] [--backend compose|local]
#
# SERVICE: kafka, generator, spark, jobmanager or taskmanager. Kafka's tools, `flink` and `python` are on PATH there.
# The command reads what is piped into the script: echo '{}' | scripts/exec.sh kafka kafka-console-producer.sh ...
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/exec.sh exec "$@"
