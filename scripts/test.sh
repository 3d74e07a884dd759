#!/usr/bin/env bash
# Summary: Set up all that the tests need, then run the checks and every tier of tests.
# Usage: scripts/test.sh [unit|judge|stack|compose|all|full] [PYTEST FLAG...]
#
# unit     no JVM, seconds
# judge    no JVM, minutes: pipelines that are wrong in one way each, and faultless ones, before the verdict
# stack    the real stack on the local backend, on ports and in a folder of its own
# compose  the demo on a real container engine
# all      (default) the checks of scripts/check.sh and all tiers; without a container engine it leaves out the
#          tier compose, but with CI=true that is a failure
# full     all, and the long forms of tests that `all` runs in a short one
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/lib/verb.sh" scripts/test.sh test "$@"
