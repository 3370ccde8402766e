#!/bin/bash
# repro.sh VMBAKE BASE MANIFEST: bakes twice, the second time with another thread count, folder, umask, time zone, locale
# and (as root) user, and compares every byte of the outputs. The first store has decoded artifacts, the second cannot keep any.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3")
store=${STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/vmbake/store}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

mkdir -m 777 "$work/one" "$work/two words"
TZ=UTC LC_ALL=C "$vmbake" bake node --offline --base "$base" --manifest "$manifest" --store "$store" --out "$work/one" -j 1

# The other user must be able to read the inputs, wherever they are.
cp "$vmbake" "$work/vmbake"
cp --reflink=auto "$base" "$work/base"
cp "$manifest" "$work/manifest.json"
mkdir "$work/store"
cp -r "$store/blobs" "$work/store"
chmod -R a+rX "$work/base" "$work/manifest.json" "$work/store"
other=()
[ "$(id -u)" != 0 ] || other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
cd "$work/two words"
umask 077
HOME=/nonexistent TZ=Asia/Kathmandu LC_ALL=C.UTF-8 "${other[@]}" "$work/vmbake" bake node --offline \
    --base "$work/base" --manifest "$work/manifest.json" --store "$work/store" --out "$work/two words/out" -j 2

for file in "$work"/one/*; do
    cmp "$file" "$work/two words/out/$(basename "$file")"
    echo "ok: identical: $(basename "$file")"
done
