#!/bin/bash
# offline.sh VMBAKE BASE MANIFEST STORE: an offline bake opens no socket but local ones, and one that lacks an artifact fails
# instead of asking for it.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3") store=$(realpath "$4")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

strace -f -qq -e trace=network -o "$work/trace" "$vmbake" bake node --offline --base "$base" --manifest "$manifest" --store "$store" --out "$work/out" --format raw
if grep -v AF_UNIX "$work/trace" | grep -E 'socket|connect|send|recv|bind'; then
    echo "FAIL: an offline bake used the network"
    exit 1
fi
# The trace does see sockets: an online bake, which looks for what it lacks, opens some.
strace -f -qq -e trace=network -o "$work/trace" "$vmbake" bake node --base "$base" --manifest "$manifest" --out "$work/online" --format raw \
    --store "$work/empty" --mirror https://ftp.debian.org/=http://127.0.0.1:1/ >"$work/said" 2>&1 && exit 1
grep -q AF_INET "$work/trace" || { echo "FAIL: no socket was seen where there must be one"; exit 1; }
echo "ok: an offline bake opens no socket"

code=0
"$vmbake" bake node --offline --base "$base" --manifest "$manifest" --out "$work/none" --store "$work/empty" >"$work/said" 2>&1 || code=$?
if [ "$code" != 1 ] || ! grep -q 'is not in the store' "$work/said"; then
    echo "FAIL: an offline bake without artifacts"
    cat "$work/said"
    exit 1
fi
echo "ok: what is not in the store stops an offline bake"
