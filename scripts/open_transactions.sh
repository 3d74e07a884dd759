#!/usr/bin/env bash
# Summary: Show how many records at a topic's end are written and not committed.
# Usage: scripts/open_transactions.sh TOPIC [--wait SECONDS] [--backend compose|local]
#
# Readers of committed records stop before the first record of an open transaction.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/open_transactions.sh open_transactions "$@"
