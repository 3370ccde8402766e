#!/bin/bash
# repro.sh VMBAKE BASE MANIFEST STORE: bakes twice, the second time with another thread count, folder, umask, time zone, locale
# and (as root) user, and compares every byte of the outputs, the record of inputs among them. The first store has decoded
# artifacts, the second cannot keep any.
# Then it builds the first-boot program again, in another folder, with another home of cargo and flags that must not count.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3") store=$(realpath "$4")
top=$(realpath "$(dirname "$0")/..")
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

test -s "$work"/one/*.inputs.json
for file in "$work"/one/*; do
    cmp "$file" "$work/two words/out/$(basename "$file")"
    echo "ok: identical: $(basename "$file")"
done

mkdir "$work/three words"
ln -s "${CARGO_HOME:-$HOME/.cargo}" "$work/cargo"
tar -C "$top" --exclude=target -c Cargo.toml Cargo.lock rust-toolchain.toml .cargo src tools/firstboot.sh | tar -C "$work/three words" -x
CARGO_HOME=$work/cargo RUSTFLAGS=-Cdebuginfo=2 "$work/three words/tools/firstboot.sh"
for arch in amd64 arm64; do
    cmp "$top/target/firstboot/$arch/firstboot" "$work/three words/target/firstboot/$arch/firstboot"
    echo "ok: identical: first-boot program for $arch"
done
