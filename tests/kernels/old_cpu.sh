#!/bin/sh
# old_cpu.sh BINARY... - runs the kernel checks on an emulated CPU without AVX: everything must
# fall back to the reference kernels, and an instruction in the wrong file dies of SIGILL.
set -eu
if ! command -v qemu-x86_64 >/dev/null; then
    echo "qemu-x86_64 is missing: apt-get install qemu-user" >&2
    exit 1
fi
for binary in "$@"; do
    qemu-x86_64 -cpu Nehalem "$binary"
done
