#!/bin/bash
# fill.sh DISK ROOTFS_TAR MOUNT_POINT ARCH [PROGRAM]: makes the ext4 of partition 1 with Debian 13's own mke2fs and lets the kernel fill it.
# PROGRAM is called with the mount point and the loop device of the disk. Needs root, for that device.
set -euo pipefail
disk=$1 tar=$2 mount=$3 arch=$4 program=${5-}
here=$(dirname "$(realpath "$0")")
. "$here/layout.sh"
[ "$(id -u)" = 0 ] || { echo "fill.sh needs root" >&2; exit 1; }
# Another process that makes itself a namespace meanwhile would keep the mount, and the device busy.
[ -n "${FILL_UNSHARED-}" ] || FILL_UNSHARED=yes exec unshare --mount "$0" "$@"

tools=$(mktemp -d)
loop=
finish() {
    ! mountpoint -q "$mount" || umount "$mount"
    [ -z "$loop" ] || { partx --delete "$loop"; losetup -d "$loop"; }
    rm -rf "$tools"
}
trap finish EXIT
mkdir -p "$mount"
# The e2fsprogs of the root file system itself: its defaults are those of the official image.
tar -xf "$tar" -C "$tools" ./usr ./lib ./lib64 ./bin ./sbin ./etc/mke2fs.conf
loop=$(losetup --find --show "$disk")
# By libblkid, as the kernel may not know the GPT.
partx --add "$loop"
mkdir -p "$tools/dev"
touch "$tools/dev/disk"
unshare --mount sh -c "mount --bind '${loop}p1' '$tools/dev/disk' &&
    exec chroot '$tools' /usr/sbin/mke2fs -q -F -t ext4 -U '$root_uuid' /dev/disk"
mount -t ext4 "${loop}p1" "$mount"
tar --xattrs --xattrs-include='*' --numeric-owner -xpf "$tar" -C "$mount"
[ -z "$program" ] || unshare --mount "$program" "$mount" "$loop"
umount "$mount"
