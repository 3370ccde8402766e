#!/bin/bash
# build.sh [--arch ARCH] [--suite SUITE] [--also PACKAGE]... [--kernel-filled] [--official] [--root-only]: builds a cloud image of Debian 13, or of SUITE (bookworm is Debian 12),
# for amd64 or arm64 (default amd64) from the Debian archive and prints its path. The disk is that of the official genericcloud image: BIOS and UEFI, arm64 UEFI alone.
# --root-only makes the root file system, for which vmbake is not needed yet, and prints nothing: the next run goes on from there.
# --also adds a package, or all packages of a pattern of apt, to those of `packages`.
#
# As an ordinary user, the root file system is written by vmbake. --kernel-filled (root only) has trixie's
# mke2fs create it and the kernel fill it, so that readers are not only tested on vmbake's output.
# --official (root, amd64, trixie) is that and more: the packages, files, boot loaders and menu are those of Debian's own image, made as its recipe
# does (official.sh, grub.sh).
# Another architecture than the machine's has its programs run by qemu-user, which takes minutes more (binfmt.sh).
# Results are cached by the digest of the resolved package list and of these scripts.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8
here=$(dirname "$(realpath "$0")")
variant=own arch=amd64 suite=trixie also=() root_only=
while [ $# -gt 0 ]; do
    case $1 in
        --arch) arch=${2:?--arch amd64 or arm64}; shift ;;
        --suite) suite=${2:?--suite trixie or bookworm}; shift ;;
        --also) also+=("${2:?--also PACKAGE}"); shift ;;
        --kernel-filled) variant=kernel ;;
        --official) variant=official ;;
        --root-only) root_only=yes ;;
        *) echo "usage: build.sh [--arch ARCH] [--suite SUITE] [--also PACKAGE]... [--kernel-filled] [--official] [--root-only]" >&2; exit 2 ;;
    esac
    shift
done
. "$here/layout.sh"
list=packages official= hooks=() boot=()
scripts=("$here"/{layout.sh,customize.sh,skeleton.py,build.sh})
if [ "$variant" = official ]; then
    [ "$arch $suite $(id -u)" = "amd64 trixie 0" ] || { echo "--official is for amd64 and trixie, and needs root" >&2; exit 2; }
    list=packages.official official=official boot=("$here/grub.sh")
    # Before the first kernel, to which Debian's image has no links; official.sh removes what is apt's.
    hooks=(--setup-hook='mkdir -p "$1/etc" && echo "do_symlinks = no" >"$1/etc/kernel-img.conf"' --skip=cleanup/apt)
    scripts+=("$here"/{official,fill,grub}.sh)
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmbake/base
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# 1. The package list, and from it the name of the result.
conf=$("$here/apt-root.sh" "$work/apt" "$arch" "$suite")
mapfile -t packages < <(sed "s/ARCH$/$arch/" "$here/$list")
APT_CONFIG=$conf apt-get -qq --print-uris install '?or(?essential,?priority(required))' apt "${packages[@]}" "${also[@]}" |
    awk '{print $2, $4}' | sort >"$work/list"
[ -s "$work/list" ] || { echo "apt resolved no package" >&2; exit 1; }
key=$(cat "$work/list" "$here/$list" "${scripts[@]}" | sha256sum | cut -c1-16)
result=$cache/$key
mkdir -p "$result"
# Another run may be building the same.
exec 9>"$result/lock"
flock 9

# 2. The root file system, and what the disk needs outside of it.
if [ ! -e "$result/rootfs.tar" ]; then
    echo "building the root file system of $(wc -l <"$work/list") packages" >&2
    include=$(IFS=,; echo "${packages[*]}")
    mkdir -p "$work/boot"
    chmod 777 "$work/boot"
    [ "$arch" = "$(dpkg --print-architecture)" ] || "$here/binfmt.sh" "$arch"
    mmdebstrap --quiet --variant=minbase --architectures="$arch" --include="$include" "${also[@]/#/--include=}" \
        --aptopt='APT::Install-Recommends "false"' --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        "${hooks[@]}" \
        --customize-hook="$here/customize.sh \"\$1\" '$work/boot' $arch $official" "$suite" "$work/rootfs.tar" - <"$work/apt/sources.list" >&2
    cp -r "$work/boot" "$result/boot.new"
    rm -rf "$result/boot"
    mv "$result/boot.new" "$result/boot"
    mv "$work/rootfs.tar" "$result/rootfs.tar"
fi
[ -z "$root_only" ] || exit 0

# 3. A disk with everything but the root file system.
image=$result/$variant.qcow2
if [ ! -e "$image" ]; then
    truncate -s "$disk_bytes" "$work/disk.raw"
    if [ "$variant" = official ]; then
        # What boots is made on the disk, in the fourth step.
        sfdisk --quiet "$work/disk.raw" <<END
label: gpt
label-id: $disk_guid
unit: sectors
14: start=$boot_start, size=$boot_sectors, type=21686148-6449-6E6F-744E-656564454649, uuid=$boot_guid
15: start=$esp_start, size=$esp_sectors, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, uuid=$esp_guid
1: start=$root_start, type=$root_type, uuid=$root_guid
END
    else
        cp -r "$result/boot" "$work/disk"
        truncate -s $((esp_sectors * 512)) "$work/disk/esp.img"
        mkfs.vfat -F 16 -n EFI -i "${esp_serial/-/}" "$work/disk/esp.img" >/dev/null
        export MTOOLS_SKIP_CHECK=1
        mmd -i "$work/disk/esp.img" ::/EFI ::/EFI/BOOT ::/EFI/debian
        mcopy -i "$work/disk/esp.img" "$work/disk/boot$efi.efi" "::/EFI/BOOT/BOOT${efi^^}.EFI"
        mcopy -i "$work/disk/esp.img" "$work/disk/grub$efi.efi" "::/EFI/BOOT/grub$efi.efi"
        mcopy -i "$work/disk/esp.img" "$work/disk/grub.cfg" ::/EFI/debian/grub.cfg
        mcopy -i "$work/disk/esp.img" "$work/disk/grub.cfg" ::/EFI/BOOT/grub.cfg
        bios=()
        [ "$arch" != amd64 ] || bios=(--new=14:$boot_start:+$boot_sectors --typecode=14:EF02 --partition-guid=14:$boot_guid)
        sgdisk --disk-guid="$disk_guid" --set-alignment=1 "${bios[@]}" \
            --new=15:$esp_start:+$esp_sectors --typecode=15:EF00 --partition-guid=15:$esp_guid \
            --set-alignment=2048 \
            --new=1:$root_start:0 --typecode=1:$root_type --partition-guid=1:$root_guid "$work/disk.raw" >/dev/null
        /usr/bin/python3 "$here/skeleton.py" "$work/disk.raw" "$work/disk" "$esp_start"
    fi

    # 4. The root file system itself.
    if [ "$variant" = own ]; then
        # As `make builder` does.
        (cd "$here/../.." && cargo build --quiet --release -p vmbake --bin vmbake --example base-image >&2)
        "$here/../../target/release/examples/base-image" \
            "$work/disk.raw" "$result/rootfs.tar" "$root_uuid" "$work/image.qcow2" >&2
    else
        "$here/fill.sh" "$work/disk.raw" "$result/rootfs.tar" "$work/mnt" "$arch" "${boot[@]}" >&2
        qemu-img convert -c -O qcow2 "$work/disk.raw" "$work/image.qcow2"
    fi
    mv "$work/image.qcow2" "$image"
fi
echo "$image"
