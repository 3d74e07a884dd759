#!/usr/bin/env bash
# Summary: Say who holds a topic's readers back: open transactions, who promised them, and the command that ends each.
# Usage: scripts/transactions.sh TOPIC [--commit ID | --abort ID] [--apply] [--checkpoints DIR] [--json]
#        [--backend compose|local]
#
# Acts only with --apply, and refuses what a checkpoint promises the opposite of. scripts/open_transactions.sh only
# counts the records, and is fast.
# Exit codes: 0 shown, or done; 1 refused: it would lose or repeat records; 2 it cannot be known.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/transactions.sh transactions "$@"
