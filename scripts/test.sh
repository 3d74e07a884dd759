#!/usr/bin/env bash
# Summary: Set up everything for the tests, then run the checks and every tier of tests.
# Usage: scripts/test.sh [unit|judge|stack|compose|all|full] [PYTEST FLAG...]
#
# unit     no JVM, seconds
# judge    no JVM, minutes: the verdict on pipelines that are wrong in one way each, and on faultless ones
# stack    the real stack on the local backend, with its own ports and folder
# compose  the demo on a real container engine
# all      (default) the checks of scripts/check.sh and all tiers; without a container engine it skips the
#          tier compose, or fails if CI=true
# full     all, and the long forms of the tests
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/test.sh test "$@"
