#!/bin/bash
# bundles.sh VMBAKE BASE MANIFEST STORE [--boot]: packs the bundles of examples/bundles, copies them between registries with oras and skopeo, verifies them
# with cosign, and bakes a node with them. With --boot, the image is booted as well.
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: bundles.sh VMBAKE BASE MANIFEST STORE [--boot]" >&2; exit 2; }
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3") store=$(realpath "$4") here=$(dirname "$(realpath "$0")")
. "$here/skip.sh"
. "$here/../tools/cosign.sh"
work=$(mktemp -d -p /var/tmp bundles.XXXXXX)
trap 'rm -rf "$work"' EXIT

for tool in docker-registry skopeo; do
    command -v $tool >/dev/null || { skip bundles.sh "$tool is not installed"; exit; }
done
find_cosign "$work" || { skip bundles.sh "no cosign, and Debian's cannot be fetched"; exit; }
find_program oras "$work" && oras=$found || { skip bundles.sh "no oras, and Debian's cannot be fetched"; exit; }

# The skopeo of Debian 12 cannot copy an index as it is; that of Debian 13 runs anywhere with its own libraries.
conf=$("$here/../tools/base-image/apt-root.sh" "$work/apt" "$(dpkg --print-architecture)")
new=$work/skopeo root=$work/trixie
mkdir "$work/debs"
(cd "$work/debs" && APT_CONFIG=$conf apt-get -qq download skopeo libc6 libgpgme11t64 libgpg-error0 libassuan9 libsubid5 libsqlite3-0) ||
    { skip bundles.sh "Debian's skopeo cannot be fetched"; exit; }
for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$root"
done
libraries=$(dirname "$(find "$root" -name libc.so.6 -print -quit)") loader=$(find "$root" -name 'ld-linux-*.so.*' -print -quit)
printf '#!/bin/sh\nexec %s --library-path %s %s/usr/bin/skopeo --insecure-policy "$@"\n' "$loader" "$libraries" "$root" >"$new"
chmod +x "$new"
"$here/bundles.py" "$vmbake" "$base" "$manifest" "$store" "$cosign" "$oras" "$new" "$work" "${@:5}"
