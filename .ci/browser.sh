#!/usr/bin/env bash
# Summary: Make sure that Chromium and its driver are there, for the tests of the live page.
# Usage: .ci/browser.sh
#
# For CI machines: installs Debian's packages when they are missing, which needs root. Elsewhere the tests that need a
# browser are skipped without one.
set -euo pipefail

PACKAGES=(chromium chromium-driver)

say() { printf 'browser: %s\n' "$*" >&2; }

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  say "Chromium is here"
  exit 0
fi
if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
  say "${PACKAGES[*]} are missing; install them, or run as root on Debian"
  exit 1
fi
say "installing ${PACKAGES[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2 >&2
apt-get install --quiet=2 --yes --no-install-recommends "${PACKAGES[@]}" >&2
