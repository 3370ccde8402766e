#!/bin/bash
# registry.sh VMBAKE IMAGE.raw: pushes a baked image to registries on loopback and pulls it from them, and checks it with oras, skopeo and cosign. IMAGE
# stays as it is.
set -euo pipefail
[ $# = 2 ] || { echo "usage: registry.sh VMBAKE IMAGE.raw" >&2; exit 2; }
vmbake=$(realpath "$1") image=$(realpath "$2") here=$(dirname "$(realpath "$0")")
. "$here/skip.sh"
. "$here/../tools/cosign.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in docker-registry skopeo zstd; do
    command -v $tool >/dev/null || { skip registry.sh "$tool is not installed"; exit; }
done
find_cosign "$work" || { skip registry.sh "no cosign, and Debian's cannot be fetched"; exit; }
find_program oras "$work" && oras=$found || { skip registry.sh "no oras, and Debian's cannot be fetched"; exit; }
"$here/registry.py" "$vmbake" "$cosign" "$oras" "$image" "$work"
