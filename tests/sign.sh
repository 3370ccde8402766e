#!/bin/bash
# sign.sh VMBAKE OUT NAME STORE: signs the release in OUT in every way, and checks that vmbake, cosign and in-toto's library accept it,
# and refuse each modified copy. OUT is not modified.
set -euo pipefail
[ $# = 4 ] || { echo "usage: sign.sh VMBAKE OUT NAME STORE" >&2; exit 2; }
vmbake=$(realpath "$1") out=$(realpath "$2") name=$3 store=$(realpath "$4") here=$(dirname "$(realpath "$0")")
. "$here/skip.sh"
. "$here/../tools/cosign.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! find_cosign "$work"; then
    skip sign.sh "no cosign, and Debian's cannot be fetched"
    exit
fi
"$here/sign.py" "$vmbake" "$cosign" "$out" "$name" "$store" "$work"
