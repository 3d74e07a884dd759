#!/usr/bin/env bash
# Summary: Start the whole stack: Kafka, generator, Spark synchronizer, Flink cluster, Flink job.
# Usage: scripts/up.sh [--backend compose|local] [--profile cluster]
#
# --profile cluster: three brokers, two JobManagers, two TaskManagers, two Spark workers, and all data in an object
# store. Later commands know the profile, also the next start, until scripts/down.sh --wipe.
# The Flink job continues from its newest retained checkpoint, the synchronizer from its own.
# GENERATOR_ARGS and SPARK_ARGS: further flags of the generator and the synchronizer, separated by spaces.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/up.sh up "$@"
