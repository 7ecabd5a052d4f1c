#!/bin/bash
# run.sh - builds everything in build/ and runs all tests.
#
#     tests/run.sh [OPTION...]      options go to cmake, e.g. -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh build test
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGALLEY_TESTS=ON "$@" >/dev/null
cmake --build build -- --quiet
ctest --test-dir build -j "$(nproc)" --output-on-failure
