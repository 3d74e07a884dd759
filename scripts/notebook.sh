#!/usr/bin/env bash
# Summary: Open the deep dive into a Spark checkpoint as a notebook, in the browser; Ctrl-C ends it.
# Usage: scripts/notebook.sh [--fresh]
#
# Prints the address, with its token, on stdout; on loopback only, NOTEBOOK_PORT in .env.
# You work on a copy in output/notebooks, which keeps its outputs; --fresh starts again from the repository's.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/notebook.sh notebook "$@"
