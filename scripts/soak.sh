#!/usr/bin/env bash
# Summary: Random faults in random order on a clean stack, and one verdict; a schedule that fails is cut down.
# Usage: scripts/soak.sh [--minutes N] [--seed N] [--mode exactly-once|at-least-once] [--backend compose|local] [--profile cluster]
#
# The seed is printed first; the same seed makes the same schedule on the same services. It does not start where a stack has data, and removes
# its own stack at the end. Results stay in results/soak-<seed>-<time>/; of a schedule that fails, fewest_faults.sh there
# has the fewest faults that still fail, as plain commands.
# Exit codes: 0 all verdicts hold, 1 one is violated, 2 it could not run.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/soak.sh soak "$@"
