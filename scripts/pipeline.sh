#!/usr/bin/env bash
# Summary: A pipeline of your own: check its file, run it, break it, and count what it lost or repeated.
# Usage: scripts/pipeline.sh check FILE | run FILE | verdict FILE [--json] | faults FILE [ROW...]
#        | soak FILE [--minutes N] [--seed N] [--backend compose|local]
#
# FILE is a TOML file, or the name of one in pipelines/; docs/pipelines.md describes its keys.
#
# check    what is missing, before anything runs
# run      start it, feed its topic, stop it, and judge it
# verdict  judge what is there now; --json prints one JSON object
# faults   kill, kill-broker, newest-commit-deleted, empty-checkpoint, older-checkpoint, upgrade, two-drivers, sink-away,
#          answer-lost: each on a topic and in a folder of its own; without a ROW, all that apply
# soak     random faults one after the other, for 5 minutes, and one verdict; the same seed gives the same order
#
# The commands of the file run as you. Exit codes: 0 holds, 1 violated, 2 unknown, or bad input.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/pipeline.sh pipeline "$@"
