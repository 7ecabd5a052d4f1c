#!/bin/bash
# setup.sh - the peer, built for this CPU, in a virtual environment of its own.
#
#     tools/peers/setup.sh VENV
set -euo pipefail
venv=${1:?usage: tools/peers/setup.sh VENV}
python3 -m venv "$venv"
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc) "$venv/bin/pip" install -q llama-cpp-python gguf numpy
