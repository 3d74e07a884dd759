#!/usr/bin/env bash
# Summary: Open a Spark or Flink checkpoint: what is in it, and what a restart from it would do.
# Usage: scripts/inspect.sh PATH [--json] [--follow] [--all] [--bootstrap HOST:PORT] [--backend compose|local]
#        scripts/inspect.sh PATH --state [--operator NAME] [--limit N] [--csv | --json]
#        scripts/inspect.sh --diff PATH OTHER_PATH [--state [--operator NAME] [--limit N] [--csv]] [--json]
#        scripts/inspect.sh PATH --garbage [--json] [--sink DIR]
#        scripts/inspect.sh PATH --against windows|classic|FILE.py [--json] [-- ARGUMENT...]
#
# PATH: checkpoints/spark/<query>, checkpoints/flink[/<job id>[/chk-N]], a savepoint; in an object store
#       s3://BUCKET/PATH. --help lists every flag.
# --against: whether this Flink job could restore it; no cluster is needed, and ARGUMENTs go to the program.
# --garbage: files that no checkpoint, savepoint or batch on record needs, with the lines that remove them.
# Reads only. Exit codes: 0 read, 1 a problem was found or a restart fails, 2 wrong usage; with --against: 0 the job can
# restore it, 1 it cannot, 2 it cannot be said.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/inspect.sh inspect "$@"
