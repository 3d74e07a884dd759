#!/usr/bin/env bash
# Summary: Bring the whole stack up: Kafka, generator, Spark synchronizer, Flink cluster, Flink job.
# Usage: scripts/up.sh [--backend compose|local]
#
# The Flink job goes on from its newest retained checkpoint, the synchronizer from its own.
# GENERATOR_ARGS and SPARK_ARGS hold further flags of the two, as words.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/up.sh up "$@"
