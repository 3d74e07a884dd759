#!/usr/bin/env bash
# Summary: Print a bill of materials, as CycloneDX JSON: the Python packages and jars that the locks name.
# Usage: scripts/sbom.sh > FILE
#
# It lists what is installed, so it fetches what is missing first. Debian's packages are those of the day of an image's
# build and not listed; docs/images.md says how to see them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/lab.sh"
case "${1:-}" in
  "") ;;
  --help | -h)
    print_help
    exit 0
    ;;
  *) die "unknown argument '$1'; see --help" ;;
esac

check_host
make_artifacts
make_environment sbom || die "what writes the bill could not be fetched; see the lines above, then run again"
exec "${ARTIFACTS}/venv-sbom/bin/python" -m requirements.sbom "${ARTIFACTS}"
