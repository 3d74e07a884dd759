#!/usr/bin/env bash
# Summary: Print a bill of materials, as CycloneDX JSON: the Python packages and jars that the locks name.
# Usage: scripts/sbom.sh > FILE
#
# It lists installed packages, so it first fetches missing ones. Debian's packages are those of the day of an image's
# build and not listed; docs/images.md shows how to see them.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/lib/verb.sh" scripts/sbom.sh sbom "$@"
