#!/bin/bash
# bench.sh VMBAKE BASE MANIFEST: wall time, CPU time and peak memory of a bake, beside qemu-img and cp on the same data, in
# one run. Ratios between the lines mean something; the seconds depend on the machine.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3") here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() { "$here/measure.py" "$@"; }
cold() { sync; [ "$(id -u)" != 0 ] || echo 3 >/proc/sys/vm/drop_caches; }

bake=("$vmbake" bake node --offline --base "$base" --manifest "$manifest" --force --out)
cold
measure "vmbake bake node, cold cache" "${bake[@]}" "$work/a"
measure "vmbake bake node, second run" "${bake[@]}" "$work/a"
measure "vmbake bake node, raw only" "${bake[@]}" "$work/b" --format raw
measure "vmbake bake node, qcow2 only" "${bake[@]}" "$work/b" --format qcow2
raw=$(ls "$work"/a/*.raw)
measure "qemu-img convert base to raw" qemu-img convert -O raw "$base" "$work/base.raw"
measure "cp --sparse=always of the baked raw" cp --sparse=always "$raw" "$work/copy.raw"
measure "qemu-img convert of the baked raw to zstd" qemu-img convert -c -O qcow2 -o compression_type=zstd "$raw" "$work/copy.qcow2"
measure "sha256sum of the baked raw" sha256sum "$raw"
ls -ls "$work"/a | awk 'NR > 1 {printf "%-44s %6.1f MiB, %6.1f MiB on disk\n", $NF, $6 / 1048576, $1 / 1024}'
