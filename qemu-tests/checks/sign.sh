#!/bin/bash
# sign.sh VMBAKE OUT NAME STORE: signs the release in OUT in every way, and asks vmbake, cosign and the library of in-toto whether they accept it,
# and what they say of each copy that was tampered with. OUT stays as it is.
set -euo pipefail
[ $# = 4 ] || { echo "usage: sign.sh VMBAKE OUT NAME STORE" >&2; exit 2; }
vmbake=$(realpath "$1") out=$(realpath "$2") name=$3 store=$(realpath "$4") here=$(dirname "$(realpath "$0")")
. "$here/../skip.sh"
. "$here/../cosign.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! find_cosign "$work"; then
    skip sign.sh "no cosign, and Debian's cannot be fetched"
    exit
fi
cat >"$work/requirements.txt" <<END
in-toto-attestation==0.9.3 \\
    --hash=sha256:1f44d3f3bded1ed551e260c5e9f834ee05de03f1d2f360bada5a172c11d748ff
protobuf==7.36.2 \\
    --hash=sha256:89f23aa53c24553a2416fd4fd1ec06f74fa42b14b546d8883128813f775bbfd2 \\
    --hash=sha256:e11e1f0180583a2af89db6a2ecd9e8dc40aa6d2988ca175bfd0e6d12ea72d74e
END
/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: --require-hashes \
    --target "$work/python" --requirement "$work/requirements.txt" || skip sign.sh "the library of in-toto cannot be fetched"
PYTHONPATH=$work/python "$here/sign.py" "$vmbake" "$cosign" "$out" "$name" "$store" "$work"
