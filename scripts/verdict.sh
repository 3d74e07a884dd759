#!/usr/bin/env bash
# Summary: Judge a pipeline from its records: was anything lost, repeated, or never sent?
# Usage: scripts/verdict.sh spark|flink|classic|source|all [--json] [--verbose] [--dump DIR] [--as-is] [--wait SECONDS]
#        [--sink SINK] [--output FOLDER] [--checkpoint FOLDER] [--bootstrap HOST:PORT] [--backend compose|local]
#
# --json       one JSON object instead of the table
# --verbose    also pending records and times
# --dump       write every lost, duplicated, unexpected, disordered and pending record there, as JSON lines
# --as-is      judge a running pipeline: what is not due yet may be pending
# --wait       how long a pipeline may take to commit everything (default: 30)
# --sink, --output, --checkpoint   the synchronizer's; by default those of its run. Folders may be s3://BUCKET/PATH
#
# The source topic is judged with each pipeline, if the generator's ledger records what was sent.
# Exit codes: 0 holds, 1 violated, 2 unknown.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/verdict.sh verdict "$@"
