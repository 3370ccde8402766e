#!/bin/bash
# setup.sh: installs what a fresh Debian machine lacks: the Debian packages that the build and the tests call, and Rust's std for the two musl
# targets of the first-boot program. Does nothing, and needs no root, when all of it is there.
set -euo pipefail

declare -A package=(
    [mmdebstrap]=mmdebstrap [newuidmap]=uidmap [qemu-img]=qemu-utils [qemu-system-x86_64]=qemu-system-x86
    [qemu-system-aarch64]=qemu-system-arm
    [qemu-aarch64-static]=qemu-user-static [arch-test]=arch-test [e2fsck]=e2fsprogs [sgdisk]=gdisk [sfdisk]=fdisk [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs
    [mkfs.vfat]=dosfstools [mcopy]=mtools
    [setfacl]=acl [setfattr]=attr [setcap]=libcap2-bin [visudo]=sudo [gcc]=gcc [/usr/bin/python3]=python3 [make]=make [xz]=xz-utils
    [zstd]=zstd [curl]=curl [gpg]=gnupg [gpgv]=gpgv [script]=bsdutils [strace]=strace [docker-registry]=docker-registry [skopeo]=skopeo
    [systemd-nspawn]=systemd-container [ip]=iproute2 [nsenter]=util-linux [fsverity]=fsverity [go]=golang-go [groff]=groff-base [mawk]=mawk [cloud-init]=cloud-init
    [openssl]=openssl [ssh]=openssh-client [rsync]=rsync [veritysetup]=cryptsetup-bin [unsquashfs]=squashfs-tools [zip]=zip [unzip]=unzip [bzip2]=bzip2 [bsdtar]=libarchive-tools
    [tshark]=tshark [umoci]=umoci [cpio]=cpio [grub-mkimage]=grub-common
)
missing=()
export PATH=$PATH:/usr/sbin:/sbin
for command in "${!package[@]}"; do
    command -v "$command" >/dev/null || missing+=("${package[$command]}")
done
[ -e /usr/share/OVMF/OVMF_CODE.fd ] || [ -e /usr/share/OVMF/OVMF_CODE_4M.fd ] || missing+=(ovmf)
[ -e /usr/lib/grub/i386-pc/kernel.img ] || missing+=(grub-pc-bin)
[ -e /usr/share/AAVMF/AAVMF_CODE.fd ] || missing+=(qemu-efi-aarch64)
# The tests run Debian's python3, whatever else is called python3 here.
for module in jinja2 jsonschema pip yaml; do
    /usr/bin/python3 -c "import $module" 2>/dev/null || missing+=("python3-$module")
done
/usr/bin/python3 -c "import ensurepip" 2>/dev/null || missing+=(python3-venv)
# Go's sources as libraries: the judge of templates.
for library in semver sprig; do
    [ -e "/usr/share/gocode/src/github.com/Masterminds/$library" ] || missing+=("golang-github-masterminds-$library-dev")
done
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
if [ "${#missing[@]}" -gt 0 ]; then
    echo "installing Debian packages: ${missing[*]}" >&2
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get -qq update
    # The tests ask the program. Its service must not set up this machine.
    [[ " ${missing[*]} " != *" cloud-init "* ]] || "${as_root[@]}" install -D -m 644 /dev/null /etc/cloud/cloud-init.disabled
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup (https://rustup.rs)" >&2; exit 1; }
libraries=$(rustc --print sysroot)/lib/rustlib
for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    ls "$libraries/$target/lib/"libstd-*.rlib >/dev/null 2>&1 || rustup target add "$target" >&2
done
