#!/usr/bin/env bash
# Summary: Start the whole stack: Kafka, generator, Spark synchronizer, Flink cluster, Flink job.
# Usage: scripts/up.sh [--backend compose|local]
#
# The Flink job continues from its newest retained checkpoint, the synchronizer from its own.
# GENERATOR_ARGS and SPARK_ARGS: further flags of the generator and the synchronizer, separated by spaces.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/up.sh up "$@"
