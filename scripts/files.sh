#!/usr/bin/env bash
# Summary: List the files of a checkpoint or an output, or print one, on a disk or in the object store.
# Usage: scripts/files.sh PLACE [--backend compose|local]
#
# PLACE: a folder or a file, such as checkpoints/spark/visits_json/offsets; in an object store s3://BUCKET/PATH.
# Exit codes: 0 shown, 1 it cannot be read, 2 wrong usage.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/files.sh files "$@"
