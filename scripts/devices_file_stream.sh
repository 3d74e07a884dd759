#!/usr/bin/env bash
# Summary: Stream device events from JSON files, one file per batch, with the sink that you choose: the query of walkthroughs 12 and 13.
# Usage: scripts/devices_file_stream.sh --input DIR --checkpoint DIR [--output DIR] [--sink SINK] [--max-files N]
#        [--max-file-age INTERVAL] [--latest-first]
#
# SINK: files (default), foreach-append, foreach-overwrite, delta, console. Ends when all existing files are read.
# An event is a line: {"eventId": "e1", "data": {"devices": [{"deviceId": "d1", "temperature": 21.5}]}}
# Exit codes: 0 done, 1 the query failed, 2 a wrong flag or something missing.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/devices_file_stream.sh devices_file_stream "$@"
