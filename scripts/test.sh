#!/usr/bin/env bash
# Summary: Set up everything for the tests, then run the checks and a tier of tests.
# Usage: scripts/test.sh [quick|ci|full] [--rest] [--record] [--shard K/N] [PATH...] [PYTEST FLAG...]
#
# quick  (default) the checks of scripts/check.sh, and what is proven on a real stack in about 15 minutes; needs
#        no container engine
# ci     quick, and Compose on a container engine, the live page in a browser, and more of each engine
# full   everything; puts what is green on record (tests/record.json), from which the shards are cut
#
# --rest       without the tests of the tiers before
# --record     put what is green on record in the tiers quick and ci, too
# --shard K/N  part K of N; scripts/test.sh full runs 1/1
# PATH         only these files of tests, e.g. tests/unit
# Each run ends with what it has left out. tests/README.md says which test belongs to which tier.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/test.sh test "$@"
