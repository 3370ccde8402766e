#!/bin/bash
# Builds the first-boot program for both architectures into target/firstboot/<arch>/firstboot. A result that did not change
# keeps its file, so that the builder, which embeds it, is not rebuilt. The same source and toolchain give the same bytes, in
# any folder and whatever flags the environment has for other programs: paths of this machine are mapped away, and flags
# of the user's own are left out. So is a wrapper around rustc: with one, the names in the program, and with them its bytes, are others.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=("--remap-path-prefix=$PWD=." "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
# A fifth of the size: functions that are equal are there once, relocations are packed, and nothing unwinds, as a panic ends
# the program.
flags+=(-Clink-arg=--icf=all -Clink-arg=--pack-dyn-relocs=relr -Clink-arg=--no-eh-frame-hdr -Cforce-unwind-tables=no
    "-Clink-arg=-T$PWD/src/firstboot/discard.ld")
# Cargo's own form, in which blanks may be part of a flag; it counts more than any other setting.
encoded=$(IFS=$'\x1f' && echo "${flags[*]}")
for pair in amd64:x86_64 arm64:aarch64; do
    arch=${pair%:*} target=${pair#*:}-unknown-linux-musl
    env -u RUSTC_WORKSPACE_WRAPPER -u RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS="$encoded" \
        cargo build --quiet --locked --profile firstboot -p vmbake-firstboot --target "$target" --target-dir target
    built=target/$target/firstboot/firstboot kept=target/firstboot/$arch/firstboot
    mkdir -p "$(dirname "$kept")"
    cmp -s "$built" "$kept" || { cp "$built" "$kept.new" && mv "$kept.new" "$kept"; }
done
