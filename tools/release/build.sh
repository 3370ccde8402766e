#!/bin/bash
# build.sh OUT: builds vmbake for amd64 and arm64 into OUT: static programs that need no libraries of the machine
# that they run on, a Debian package of each, the licences and the bill of materials of what is linked into them, and SHA256SUMS.
#
# The same source and toolchain give the same bytes in any folder: paths of this machine are mapped away, flags of the user's own are left out, C is
# compiled by a pinned compiler (zig.sh), and times are SOURCE_DATE_EPOCH, by default that of the last commit. So is a wrapper around rustc
# left out: with one, the names in the program, and with them its bytes, are others.
# Needs what `make builder` leaves: the first-boot programs, and the example that writes the man pages.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
# Without git, as in an unpacked archive of the source: 2026-01-01.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}"
export SOURCE_DATE_EPOCH

mapfile -t compiler < <(tools/release/zig.sh "$PWD/target/tools/zig")
[ "${#compiler[@]}" -gt 0 ]
flags=("--remap-path-prefix=$PWD=." "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
# Cargo's own form, in which blanks may be part of a flag; it counts more than any other setting.
encoded=$(IFS=$'\x1f' && echo "${flags[*]}")
env -u RUSTC_WORKSPACE_WRAPPER -u RUSTC_WRAPPER -u CFLAGS -u TARGET_CFLAGS CARGO_ENCODED_RUSTFLAGS="$encoded" "${compiler[@]}" \
    cargo build --quiet --locked --profile dist -p vmbake --bin vmbake \
    --target x86_64-unknown-linux-musl --target aarch64-unknown-linux-musl --target-dir target

version=$(cargo metadata --format-version 1 --no-deps --locked | /usr/bin/python3 -c \
    'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "vmbake"))')
mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$(dirname "$out")/packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
declare -A cpu=([amd64]=x86_64 [arm64]=aarch64)
own=$(dpkg --print-architecture)
for shell in bash zsh fish; do
    "target/${cpu[$own]}-unknown-linux-musl/dist/vmbake" completions "$shell" >"$work/$shell"
done
target/release/examples/reference "$work/cli.md" "$work/man"
tools/release/third_party.py >"$work/third-party.txt"
mkdir "$work/out"
for arch in "${!cpu[@]}"; do
    install -m 0755 "target/${cpu[$arch]}-unknown-linux-musl/dist/vmbake" "$work/out/vmbake-$version-$arch"
    tools/release/deb.sh "$arch" "$version" "$work/out/vmbake-$version-$arch" "$work" "$work/out"
done
install -m 0644 "$work/third-party.txt" "$work/out/vmbake-$version-third-party.txt"
tools/release/sbom.py >"$work/out/vmbake-$version.cdx.json"
(cd "$work/out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
rm -rf "$out"
mv "$work/out" "$out"
cat "$out/SHA256SUMS"
