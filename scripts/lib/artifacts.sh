# shellcheck shell=bash
# What the local backend runs, fetched once per lock file: two virtual environments and the jars.

# artifact_ready NAME FILE...: succeeds when NAME was made from these very files.
artifact_ready() {
  local name="$1"
  shift
  [[ -f "${ARTIFACTS}/${name}.made-from" && "$(<"${ARTIFACTS}/${name}.made-from")" == "$(artifact_key "$@")" ]]
}

artifact_key() {
  cat "$@" | sha256sum | cut --delimiter ' ' --fields 1
}

artifact_done() {
  local name="$1"
  shift
  artifact_key "$@" >"${ARTIFACTS}/${name}.made-from"
}

# make_environment NAME: a virtual environment with exactly what requirements/NAME.lock names.
make_environment() {
  local name="$1"
  local folder="${ARTIFACTS}/venv-${name}"
  local pip=("${folder}/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes)
  artifact_ready "venv-${name}" "${ROOT}/requirements/build.lock" "${ROOT}/requirements/${name}.lock" && return 0
  say "fetching the Python environment '${name}' ..."
  rm --recursive --force "${folder}"
  "$(find_python)" -m venv "${folder}" || return 1
  "${pip[@]}" --requirement "${ROOT}/requirements/build.lock" >&2 || return 1
  # Source distributions are built with the hashed tools just installed, not with ones fetched unchecked.
  "${pip[@]}" --no-build-isolation --requirement "${ROOT}/requirements/${name}.lock" >&2 || return 1
  artifact_done "venv-${name}" "${ROOT}/requirements/build.lock" "${ROOT}/requirements/${name}.lock"
}

# fetch_jars GROUP...
fetch_jars() {
  local group
  for group in "$@"; do
    artifact_ready "jars-${group}" "${ROOT}/requirements/jars.lock" && continue
    say "fetching the jars of ${group} ..."
    rm --recursive --force "${ARTIFACTS}/jars/${group}"
    "${ARTIFACTS}/venv-tools/bin/python" "${ROOT}/requirements/jars.py" fetch "${group}" "${ARTIFACTS}/jars/${group}" >&2 || return 1
    artifact_done "jars-${group}" "${ROOT}/requirements/jars.lock"
  done
}

# add_to_tools NAME WHAT: what requirements/NAME.lock names, on top of the tools environment; WHAT says it to people.
add_to_tools() {
  artifact_ready "$1" "${ROOT}/requirements/tools.lock" "${ROOT}/requirements/$1.lock" && return 0
  say "fetching $2 ..."
  "${ARTIFACTS}/venv-tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    --requirement "${ROOT}/requirements/$1.lock" >&2 || die "$2 could not be fetched; see the lines above, then run again"
  artifact_done "$1" "${ROOT}/requirements/tools.lock" "${ROOT}/requirements/$1.lock"
}

# The contributor's checks and test runner.
make_dev_environment() {
  add_to_tools dev "the test tools"
}

# Jupyter.
make_notebook_environment() {
  add_to_tools notebook Jupyter
}

# make_web_guard spark|flink: the jar that refuses foreign web pages, from its sources and what the environments ship.
make_web_guard() {
  local engine="$1" packages="lib/python${PYTHON_VERSION}/site-packages" made_from folders
  made_from=("${ROOT}"/web_guard/*.py "${ROOT}"/web_guard/java/faultline/web/*.java "${ROOT}"/requirements/{tools,flink}.lock)
  artifact_ready "web-guard-${engine}" "${made_from[@]}" && return 0
  folders=("${ARTIFACTS}/venv-tools/${packages}/pyspark/jars")
  [[ "${engine}" != flink ]] || folders+=("${ARTIFACTS}/venv-flink/${packages}/pyflink/lib")
  (cd "${ROOT}" && "${ARTIFACTS}/venv-tools/bin/python" -m web_guard.build "${engine}" \
    "${ARTIFACTS}/jars/web_guard/web-guard-${engine}.jar" "${folders[@]}" >&2) || return 1
  artifact_done "web-guard-${engine}" "${made_from[@]}"
}

# make_artifacts: all that the local backend needs; a second call takes no time.
make_artifacts() {
  local flink failed=""
  mkdir -p "${ARTIFACTS}"
  # Flink's environment and the rest do not wait for each other.
  make_environment flink &
  flink=$!
  { make_environment tools && fetch_jars kafka spark flink; } || failed="the tools and jars"
  wait "${flink}" || failed="the Flink environment"
  [[ -z "${failed}" ]] || die "${failed} could not be fetched; see the lines above, then run again"
  { make_web_guard spark && make_web_guard flink; } || die "the web guard could not be made; see the lines above, then run again"
  link_flink_connector
}

# Flink loads connectors from the folder of its own jars.
link_flink_connector() {
  local jar
  for jar in "${ARTIFACTS}"/jars/flink/*.jar; do
    ln --symbolic --force "${jar}" "${ARTIFACTS}/venv-flink/lib/python${PYTHON_VERSION}/site-packages/pyflink/lib/"
  done
}
