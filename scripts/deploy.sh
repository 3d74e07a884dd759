#!/usr/bin/env bash
# Summary: Write the Kubernetes manifests in deploy/, or print how large a cluster must be for a load.
# Usage: scripts/deploy.sh write | size [FLAG...]
#
#   write    write deploy/*.yaml from .env and deploy/kubernetes.env; it does not touch any cluster
#   size     print partitions, slots, state, transactions and requests, each with its arithmetic
#              --visits-per-second N   the load (default: 1000000)
#              --busy SHARE            share of a core that a task uses in normal operation (default: 0.5)
#              --price-writes P        your object store's price of 1,000 writes and listings
#              --price-reads P         its price of 1,000 reads
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/deploy.sh deploy "$@"
