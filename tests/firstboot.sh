#!/bin/bash
# firstboot.sh: the first-boot programs of both architectures are static, small and run, and converge after a kill at any point.
set -euo pipefail
cd "$(dirname "$0")/../target/firstboot"
limit=$((700 * 1024))
for arch in amd64 arm64; do
    program=$arch/firstboot
    size=$(stat -c %s "$program")
    [ "$size" -le $limit ] || { echo "FAIL: $program has $size bytes, more than $limit"; exit 1; }
    # The builder's own build refuses one with an interpreter; here it has to run without any library.
    run=()
    [ "$(dpkg --print-architecture)" = "$arch" ] || run=("qemu-$([ $arch = arm64 ] && echo aarch64 || echo x86_64)-static")
    [[ $("${run[@]}" "./$program" --version) == firstboot\ * ]] || { echo "FAIL: $program does not run"; exit 1; }
    echo "ok: $program: $size bytes"
done
../../tests/crash.py "$(dpkg --print-architecture)/firstboot"
