#!/bin/bash
# manifest.sh BASE MANIFEST: resolves the artifacts of kind node against the packages that are installed in the image BASE,
# downloads them into the store and writes the manifest, which pins BASE too.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
base=$1 manifest=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/../../target/release/vmbake" cat "$base" /var/lib/dpkg/status >"$work/status"
conf=$("$here/apt-root.sh" "$work/apt" amd64 "$work/status")
python3 "$here/node-artifacts.py" "$conf" "$manifest" "$base"
