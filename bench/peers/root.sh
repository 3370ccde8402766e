#!/bin/bash
# root.sh BASE SIZE SITE LAYERS OUT: the classic root script, for a node of the control plane as qcow2: the base becomes a raw disk of SIZE,
# is mounted by a loop device, dpkg, useradd, tar and systemctl install the artifacts of SITE below chroot (tests/harness/install.sh), and
# qemu-img compresses the disk. It works in the folder of OUT. Needs root.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
base=$1 size=$2 site=$3 layers=$4 out=$5 here=$(dirname "$(realpath "$0")")
work=$(mktemp -d -p "$(dirname "$out")")
loop=
clean() {
    if mountpoint -q "$work/root"; then umount "$work/root"; fi
    [ -z "$loop" ] || losetup --detach "$loop"
    rm -rf --one-file-system "$work"
}
trap clean EXIT
source "$here/disk.sh"

mkdir "$work/root"
grown "$base" "$size" "$work/disk"
loop=$(losetup --find --show --offset $((start * 512)) --sizelimit $((length * 512)) "$work/disk")
resize2fs -f "$loop" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mount -o discard "$loop" "$work/root"
"$here/../../tests/harness/install.sh" "$work/root" "$site" "$layers"
fstrim "$work/root"
umount "$work/root"
losetup --detach "$loop"
loop=
compressed "$work/disk" "$out"
