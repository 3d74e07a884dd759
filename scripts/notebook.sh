#!/usr/bin/env bash
# Summary: Open the deep dive into a Spark checkpoint as a notebook, in the browser; Ctrl-C ends it.
# Usage: scripts/notebook.sh [--fresh]
#
# Prints the address, with its token, on stdout; on loopback only, NOTEBOOK_PORT in .env.
# You work on a copy in output/notebooks, where its outputs stay; --fresh starts again from the repository's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/lab.sh"
fresh=false
case "${1:-}" in
  "") ;;
  --fresh) fresh=true ;;
  --help | -h)
    print_help
    exit 0
    ;;
  *) die "unknown argument '$1'; see --help" ;;
esac

check_ports NOTEBOOK_PORT
make_tools "the notebook" spark
make_notebook_environment

name=spark_checkpoint_deep_dive.ipynb
folder="${STACK_HOME}/output/notebooks"
mkdir -p "${folder}"
if [[ "${fresh}" == false && -f "${folder}/${name}" ]]; then
  say "going on with your copy, ${folder}/${name}; --fresh starts again from the repository's"
else
  cp "${ROOT}/notebooks/${name}" "${folder}/${name}"
fi

# All that Jupyter writes besides stays with the stack's own state, away from the user's home.
export JUPYTER_CONFIG_DIR="${STACK_STATE}/jupyter/config" JUPYTER_DATA_DIR="${STACK_STATE}/jupyter/data"
export JUPYTER_RUNTIME_DIR="${STACK_STATE}/jupyter/runtime" IPYTHONDIR="${STACK_STATE}/jupyter/ipython"
token="$("${ARTIFACTS}/venv-tools/bin/python" -c 'import secrets; print(secrets.token_hex(16))')"
# By the environment and not by a flag, which every user of the machine could read.
export JUPYTER_TOKEN="${token}"
echo "http://${BIND_ADDRESS}:${NOTEBOOK_PORT}/notebooks/${name}?token=${token}"
flags=("--ServerApp.ip=${BIND_ADDRESS}" "--ServerApp.port=${NOTEBOOK_PORT}" --ServerApp.port_retries=0)
flags+=("--ServerApp.root_dir=${folder}" --ServerApp.open_browser=False --Application.log_level=ERROR)
# In containers the only user is root; the server is on loopback and asks for the token all the same.
((EUID != 0)) || flags+=(--allow-root)
exec "${ARTIFACTS}/venv-tools/bin/python" -m notebook "${flags[@]}"
