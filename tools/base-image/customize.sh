#!/bin/bash
# customize.sh ROOT BOOT ARCH [official]: turns the plain root file system ROOT into that of a cloud image, and copies into BOOT what
# the disk needs outside of it; nothing for Debian's own image. A hook of mmdebstrap: ROOT can be entered with chroot.
set -euo pipefail
root=$1 boot=$2 arch=$3 official=${4-}
. "$(dirname "$0")/layout.sh"
mkdir -p "$boot"

lower() { tr '[:upper:]' '[:lower:]' <<<"$1"; }
esp_mount="defaults 0 0"
[ -z "$official" ] || esp_mount="defaults,umask=077 0 2"
cat >"$root/etc/fstab" <<END
PARTUUID=$(lower "$root_guid") / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1
PARTUUID=$(lower "$esp_guid") /boot/efi vfat $esp_mount
END
mkdir -p "$root/boot/efi"
: >"$root/etc/machine-id"
: >"$root/etc/hostname"
chmod 0644 "$root/etc/hostname"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_*_key* "$root/etc/resolv.conf"
ln -s ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
echo "LANG=C.UTF-8" >"$root/etc/default/locale"
# The clean-up of mmdebstrap keeps these two.
rm -rf "$root"/var/log/*.log "$root"/var/log/apt/* "$root"/var/cache/debconf/*-old
[ -z "$official" ] || exec "$(dirname "$0")/official.sh" "$root"
printf 'datasource_list: [ NoCloud, ConfigDrive, Ec2, GCE, None ]\n' >"$root/etc/cloud/cloud.cfg.d/90_datasources.cfg"

kernel=$(basename "$root"/boot/vmlinuz-*)
initrd=$(basename "$root"/boot/initrd.img-*)
mkdir -p "$root/boot/grub/fonts"
cp "$root/usr/share/grub/unicode.pf2" "$root/boot/grub/fonts/"
# A graphical menu, as grub-mkconfig(8) writes it.
cat >"$root/boot/grub/grub.cfg" <<END
set default=0
function load_video {
  insmod all_video
}
if loadfont unicode ; then
  set gfxmode=auto
  load_video
  insmod gfxterm
fi
terminal_output gfxterm
set timeout_style=menu
set timeout=1
menuentry 'Debian GNU/Linux' {
	insmod part_gpt
	insmod ext2
	search --no-floppy --fs-uuid --set=root $root_uuid
	linux /boot/$kernel root=PARTUUID=$(lower "$root_guid") ro console=tty0 console=$console
	initrd /boot/$initrd
}
END

# The BIOS finds GRUB in a separate partition, UEFI in the ESP.
if [ "$arch" = amd64 ]; then
    mkdir "$root/boot/grub/i386-pc"
    cp "$root"/usr/lib/grub/i386-pc/*.{mod,lst} "$root/boot/grub/i386-pc/"
    printf 'search.fs_uuid %s root\nset prefix=($root)/boot/grub\n' "$root_uuid" >"$root/tmp/early.cfg"
    chroot "$root" grub-mkimage -O i386-pc -o /tmp/core.img -p /boot/grub -c /tmp/early.cfg \
        biosdisk part_gpt ext2 search search_fs_uuid normal configfile
    mv "$root/tmp/core.img" "$boot/core.img"
    rm "$root/tmp/early.cfg"
    cp "$root/usr/lib/grub/i386-pc/boot.img" "$boot/boot.img"
fi
cp "$root/usr/lib/shim/shim$efi.efi.signed" "$boot/boot$efi.efi"
cp "$root/usr/lib/grub/$grub-signed/grub$efi.efi.signed" "$boot/grub$efi.efi"
cat >"$boot/grub.cfg" <<END
search.fs_uuid $root_uuid root
set prefix=(\$root)/boot/grub
configfile \$prefix/grub.cfg
END
