#!/bin/bash
# reproduce.sh PACKAGES: builds the static programs and Debian packages again, in another folder, with another home of cargo, umask, time zone and flags
# that must not count, and compares every byte with PACKAGES.
set -euo pipefail
packages=$(realpath "$1")
top=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
mkdir -p "$work/two words/target/release/examples"
ln -s "${CARGO_HOME:-$HOME/.cargo}" "$work/cargo"
tar -C "$top" --exclude=./target --exclude=./dist --exclude=./.git -c . | tar -C "$work/two words" -x
cp -r "$top/target/firstboot" "$work/two words/target"
cp "$top/target/release/examples/reference" "$work/two words/target/release/examples"
cd /
umask 077
CARGO_HOME=$work/cargo RUSTFLAGS=-Cdebuginfo=2 CFLAGS=-g TZ=Asia/Kathmandu "$work/two words/tools/release/build.sh" "$work/two words/out" >/dev/null
diff "$packages/SHA256SUMS" "$work/two words/out/SHA256SUMS"
for file in "$packages"/*; do
    cmp "$file" "$work/two words/out/$(basename "$file")"
    echo "ok: identical: $(basename "$file")"
done
