#!/usr/bin/env bash
# Summary: Make a virtual environment with exactly the packages of docker/requirements/NAME.lock (in the image's build).
# Usage: docker/make_environment.sh NAME FOLDER [FROM_SOURCE]
#
# FROM_SOURCE: if not empty, apache-flink is compiled; on arm64 Linux it always is, since it has no wheel there.
set -euo pipefail

name="$1" folder="$2" from_source="${3:-}"
locks="$(cd "$(dirname "${BASH_SOURCE[0]}")/requirements" && pwd)"
options=()

if [[ "${name}" == flink ]] && { [[ -n "${from_source}" ]] || [[ "$(dpkg --print-architecture)" != amd64 ]]; }; then
  # The source distribution carries the C files that Cython made, so a C compiler is all it takes.
  apt-get update
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev
  options+=(--no-binary apache-flink)
fi

python3 -m venv "${folder}"
pip=("${folder}/bin/python" -m pip)
"${pip[@]}" install --quiet --require-hashes --requirement "${locks}/build.lock"
# Source distributions are built with the hashed tools just installed, not with unchecked ones.
"${pip[@]}" install --quiet --no-build-isolation --require-hashes "${options[@]}" --requirement "${locks}/${name}.lock"
"${pip[@]}" check
"${pip[@]}" uninstall --quiet --yes setuptools wheel pip

# A third of the size, which no service needs: test suites, C headers, debug information, parts of Arrow that are only
# loaded by name, and the native libraries of other platforms.
site="$(echo "${folder}"/lib/python3*/site-packages)"
rm -rf "${site}"/{pandas,pyarrow,numpy,apache_beam}/tests "${site}"/numpy/*/tests "${site}"/pyarrow/include \
  "${site}"/pyarrow/libarrow_{flight,s3}.so* "${site}"/pyarrow/_{flight,s3fs}.*
# Not in all packages: a library that auditwheel has renamed does not load after strip.
for package in "${site}"/{apache_beam,fastavro,zstandard}; do
  [[ ! -e "${package}" ]] || find "${package}" -name '*.so' -exec strip --strip-debug {} +
done
for jar in "${site}"/pyflink/lib/flink-dist-*.jar "${site}"/pyspark/jars/rocksdbjni-*.jar; do
  [[ ! -e "${jar}" ]] || zip --quiet "${jar}" --delete 'lib*jni-*' --exclude '*linux64.so' '*linux-aarch64.so'
done
