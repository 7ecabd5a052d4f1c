#!/bin/sh
# setup.sh - installs the Debian packages that are missing, and says nothing when none is.
#
#     tools/setup.sh STEP...      steps as in tools/packages.txt: build test check
#
# Needs root or sudo only when something is missing.
set -eu
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: no dpkg here; the libraries of tools/packages.txt are assumed to be installed" >&2
    exit 0
fi

missing=
for step in "$@"; do
    for package in $(sed -n "s/^$step //p" tools/packages.txt); do
        state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1) || state=
        [ "$state" = installed ] || missing="$missing $package"
    done
done
[ -n "$missing" ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: packages are missing, and here is neither root nor sudo; as root:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    root="sudo --"
fi
echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # words on purpose
$root apt-get update -qq
# shellcheck disable=SC2086
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
