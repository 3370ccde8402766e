#!/bin/bash
# foreign.sh ARCH: builds a Debian 13 disk image of another architecture without running any of its programs, and prints its
# path. It has a root file system with packages, users and libraries, and nothing that boots. Needs root, for owners.
# mmdebstrap's chrootless mode runs maintainer scripts on the host; those of systemd need a newer host, so it is left out,
# and its group is made here.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8
here=$(dirname "$(realpath "$0")")
arch=$1
declare -A root=([arm64]=B921B045-1DF0-41C3-AF44-4C6F280D3FAE [amd64]=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmbake/base
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"
conf=$("$here/apt-root.sh" "$work/apt" "$arch")
key=$( (APT_CONFIG=$conf apt-cache dumpavail | sha256sum; cat "$here"/{foreign,apt-root}.sh) | sha256sum | cut -c1-16)
image=$cache/$arch-$key.qcow2
# Another run may be building the same.
exec 9>"$cache/$arch-$key.lock"
flock 9
if [ ! -e "$image" ]; then
    # libwrap0 is in every base that has an SSH server, and python3 in every one with cloud-init: rsync brings a script for it, and its
    # own packages cannot be configured on the host.
    mmdebstrap --quiet --mode=chrootless --variant=minbase --architectures="$arch" \
        --include=ca-certificates,curl,libwrap0,passwd,procps,tar \
        --aptopt='APT::Install-Recommends "false"' --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        --customize-hook='echo systemd-journal:x:101: >>"$1/etc/group"; echo "systemd-journal:!::" >>"$1/etc/gshadow"' \
        --customize-hook='printf "#!/bin/sh\n" >"$1/usr/bin/python3"; chmod 755 "$1/usr/bin/python3"' \
        --customize-hook='rm -f "$1/etc/hostname"; : >"$1/etc/machine-id"' \
        trixie "$work/rootfs.tar" - <"$work/apt/sources.list" >&2
    mkdir "$work/root"
    tar -C "$work/root" --numeric-owner --xattrs --xattrs-include='*' -xpf "$work/rootfs.tar"
    truncate -s 2G "$work/disk"
    sgdisk -n 1:2048:0 -t "1:${root[$arch]}" "$work/disk" >/dev/null
    mke2fs -q -t ext4 -b 4096 -E offset=1048576 -d "$work/root" "$work/disk" 2000M
    qemu-img convert -O qcow2 -c -o compression_type=zstd "$work/disk" "$work/image"
    mv "$work/image" "$image"
fi
echo "$image"
