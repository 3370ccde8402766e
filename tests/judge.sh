#!/bin/bash
# judge.sh NAME: asks the tools of others about dist's NAME.raw and NAME.qcow2. Each must find nothing wrong.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
name=$1
raw=$name.raw qcow2=$name.qcow2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ok() { printf 'ok: %s\n' "$*"; }

(cd "$(dirname "$name")" && sha256sum --quiet --check SHA256SUMS) && ok "SHA256SUMS"
(cd "$(dirname "$name")" && cut -d ' ' -f 2- FSVERITYSUMS | xargs -d '\n' fsverity digest | cmp - FSVERITYSUMS) && ok "FSVERITYSUMS"

qemu-img check -q "$qcow2" && ok "qemu-img check"
qemu-img compare -q "$raw" "$qcow2" && ok "qemu-img compare of raw and qcow2"

verdict=$(sgdisk -v "$raw")
grep -q '^No problems found' <<<"$verdict" || { echo "$verdict"; exit 1; }
ok "sgdisk -v"
[ "$(sgdisk -p "$raw" | awk '$1 ~ /^[0-9]+$/ {printf "%s ", $1}')" = "1 14 15 " ] && ok "partitions 1, 14, 15"

# partition NUMBER: copies one partition out, sparse.
partition() {
    local first last
    first=$(sgdisk -i "$1" "$raw" | awk '/^First sector/ {print $3}')
    last=$(sgdisk -i "$1" "$raw" | awk '/^Last sector/ {print $3}')
    dd if="$raw" of="$work/p$1" bs=1M iflag=skip_bytes,count_bytes conv=sparse status=none \
        skip=$((first * 512)) count=$(((last - first + 1) * 512))
    truncate -s $(((last - first + 1) * 512)) "$work/p$1"
}

partition 15
fsck.vfat -n "$work/p15" >"$work/fat" || { cat "$work/fat"; exit 1; }
ok "fsck.vfat -n"

partition 1
e2fsck -fn "$work/p1" >"$work/e2fsck" 2>&1 || { cat "$work/e2fsck"; exit 1; }
ok "e2fsck -fn: $(tail -n 1 "$work/e2fsck")"
truncate -s $((2 * $(stat -c %s "$work/p1"))) "$work/p1"
resize2fs "$work/p1" >"$work/resize" 2>&1 || { cat "$work/resize"; exit 1; }
e2fsck -fn "$work/p1" >"$work/e2fsck" 2>&1 || { cat "$work/e2fsck"; exit 1; }
ok "e2fsck -fn after growing to twice the size: $(tail -n 1 "$work/e2fsck")"
