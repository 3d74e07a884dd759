#!/usr/bin/env bash
# Summary: Copy the certificate authorities that this host trusts beyond its distribution's into docker/certs/.
# Usage: docker/collect_certs.sh [BUNDLE [PACKAGED [TARGET]]]
#
# BUNDLE is what the host trusts (default: SSL_CERT_FILE, else /etc/ssl/certs/ca-certificates.crt), PACKAGED the
# folder of the distribution's own (default: /usr/share/ca-certificates). Both exist only on Debian and its derivatives;
# elsewhere, and on a host without extra certificates, nothing is written.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
bundle="${1:-${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}}"
packaged="${2:-/usr/share/ca-certificates}"
target="${3:-${root}/docker/certs}"

# One line for each certificate on stdin: its base64 text without line breaks, so that layout does not matter.
certificates() {
  awk '
    /-----BEGIN CERTIFICATE-----/ { inside = 1; text = ""; next }
    /-----END CERTIFICATE-----/   { if (inside) print text; inside = 0; next }
    inside { gsub(/[ \t\r]/, ""); text = text $0 }'
}

[[ -r "${bundle}" && -d "${packaged}" ]] || exit 0

wanted=() new=0
while IFS= read -r certificate; do
  file="host-$(printf '%s' "${certificate}" | sha256sum | cut --characters 1-16).crt"
  wanted+=("${file}")
  # Written once: a file that does not change keeps the build's layers valid.
  if [[ ! -f "${target}/${file}" ]]; then
    mkdir -p "${target}"
    {
      echo '-----BEGIN CERTIFICATE-----'
      fold --width 64 <<<"${certificate}"
      echo '-----END CERTIFICATE-----'
    } >"${target}/${file}"
    chmod 0644 "${target}/${file}"
    new=$((new + 1))
  fi
done < <(comm -23 \
  <(certificates <"${bundle}" | sort --unique) \
  <(find "${packaged}" -name '*.crt' -exec cat {} + | certificates | sort --unique))

# Remove certificates that the host no longer trusts; manually added files stay.
for path in "${target}"/host-*.crt; do
  [[ -e "${path}" ]] || continue
  [[ " ${wanted[*]} " == *" $(basename "${path}") "* ]] || rm "${path}"
done
if ((new)); then
  echo "certificates: ${new} that this host trusts beyond its distribution's will be trusted in the images (docker/certs)" >&2
fi
