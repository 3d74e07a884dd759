# shellcheck shell=bash
# What a machine must have, checked before anything starts: one line for what is missing.

# find_python: prints a Python of the pinned version.
find_python() {
  local candidate
  for candidate in "python${PYTHON_VERSION}" python3 python; do
    if command -v "${candidate}" >/dev/null &&
      [[ "$("${candidate}" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" == "${PYTHON_VERSION}" ]]; then
      command -v "${candidate}"
      return 0
    fi
  done
  return 1
}

check_python() {
  find_python >/dev/null ||
    die "Python ${PYTHON_VERSION} was not found on PATH; install it, or use Docker: --backend compose"
}

check_java() {
  local version
  command -v java >/dev/null ||
    die "Java was not found; install a Java ${JAVA_VERSION} runtime or set JAVA_HOME, or use Docker: --backend compose"
  version="$(java -version 2>&1 | sed --quiet 's/.*version "\([0-9]*\).*/\1/p' | head --lines 1)"
  [[ "${version}" == "${JAVA_VERSION}" ]] ||
    die "Java ${version:-of an unknown version} is not the one that Spark, Flink and Kafka run on here; install Java ${JAVA_VERSION} and set JAVA_HOME"
}

# check_path FOLDER...: Flink's and Spark's own start scripts cut a path at a blank.
check_path() {
  local folder
  for folder in "$@"; do
    [[ "${folder}" != *[[:space:]]* ]] ||
      die "the path '${folder}' has a blank in it, which the start scripts of Flink and Spark cannot do with; move it to a path without one"
  done
}

# check_host: what programs need that run as processes of this machine.
check_host() {
  check_path "${ROOT}" "${ARTIFACTS}" "${STACK_HOME}"
  check_java
  check_python
}

# check_memory MEBIBYTES
check_memory() {
  local available
  [[ -r /proc/meminfo ]] || return 0
  available="$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)"
  ((available >= $1)) ||
    die "only ${available} MiB of memory are available, the stack needs $1 MiB; close other programs first"
}

# check_disk PATH MEBIBYTES
check_disk() {
  local free
  free="$(df --portability --block-size=1M "$1" | awk 'NR == 2 { print $4 }')"
  ((free >= $2)) ||
    die "only ${free} MiB are free under $1, $2 MiB are needed; make room first"
}

# check_ports NAME...: each names a setting that holds a port.
check_ports() {
  local name
  for name in "$@"; do
    if port_taken "${!name}"; then
      die "port ${!name} on ${BIND_ADDRESS} is taken; stop what listens there, or choose another: ${name}=... ${0##*/}"
    fi
  done
}
