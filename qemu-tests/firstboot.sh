#!/bin/bash
# Builds the first-boot program for both architectures into target/firstboot/<arch>/firstboot. A result that did not change
# keeps its file, so that the builder, which embeds it, is not built again. Paths of this machine are mapped away: the
# same source gives the same bytes in any folder. So does plain rustc: with a wrapper around it the names in the program,
# and with them its bytes, are others.
set -euo pipefail
cd "$(dirname "$0")/.."
remap="--remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
# A tenth of the size: functions that are equal are there once, relocations are packed, and nothing unwinds, as a panic ends
# the program.
small="-Clink-arg=--icf=all -Clink-arg=--pack-dyn-relocs=relr -Clink-arg=--no-eh-frame-hdr -Cforce-unwind-tables=no"
for pair in amd64:x86_64 arm64:aarch64; do
    arch=${pair%:*} target=${pair#*:}-unknown-linux-musl
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
    env -u RUSTC_WORKSPACE_WRAPPER "$variable=$remap $small ${!variable:-}" \
        cargo build --quiet --locked --profile firstboot -p vmbake-firstboot --target "$target"
    built=target/$target/firstboot/firstboot kept=target/firstboot/$arch/firstboot
    mkdir -p "$(dirname "$kept")"
    cmp -s "$built" "$kept" || { cp "$built" "$kept.new" && mv "$kept.new" "$kept"; }
done
