#!/bin/bash
# grub.sh ROOT DISK: has the GRUB of ROOT install itself for BIOS and UEFI and write its menu, as Debian's recipe for cloud images does.
# DISK is the loop device whose first partition is mounted at ROOT, and whose ESP is made here. Runs in a separate mount namespace.
set -euo pipefail
root=$1 disk=$2 arch=amd64
. "$(dirname "$0")/layout.sh"
partuuid=${root_guid,,}
mkfs.vfat -i "${esp_serial/-/}" "${disk}p15" >/dev/null

find "$root/dev" -mindepth 1 -delete
mount --bind /dev "$root/dev"
mount --bind /sys "$root/sys"
for folder in boot/efi proc run tmp; do mount -t tmpfs none "$root/$folder"; done
# The kernel may lack vfat: grub-install reads here that the ESP is mounted, and what it leaves in that folder is copied.
mkdir "$root/proc/self"
cp /proc/devices "$root/proc/"
printf '1 0 0:1 / / rw - ext4 %sp1 rw\n2 1 0:2 / /boot/efi rw - vfat %sp15 rw\n' "$disk" "$disk" >"$root/proc/self/mountinfo"
install() {
    chroot "$root" grub-install --target="$1" --boot-directory=/boot --efi-directory=/boot/efi --no-nvram --no-bootsector \
        --force --force-extra-removable --skip-fs-probe --modules="ext2 part_gpt" "${@:2}"
}
install i386-pc "$disk"
install x86_64-efi
MTOOLS_SKIP_CHECK=1 mcopy -s -i "${disk}p15" "$root/boot/efi/EFI" ::
chroot "$root" /usr/lib/grub/i386-pc/grub-bios-setup --directory=/boot/grub/i386-pc --force --skip-fs-probe "$disk"

# The menu is for another machine's disk: grub-mkconfig gets the answers of that one.
mkdir "$root/run/grub"
cat >"$root/run/grub/grub-probe" <<END
#!/bin/sh
case "\$*" in
    *--target=compatibility_hint*) echo hd0,gpt1 ;;
    *--target=device*) echo PARTUUID=$partuuid ;;
    *--target=fs_uuid*) echo $root_uuid ;;
    *--target=fs*) echo ext2 ;;
    *--target=hints_string*) echo "--hint-bios=hd0,gpt1 --hint-efi=hd0,gpt1 --hint-baremetal=ahci0,gpt1 " ;;
    *--target=partmap*) echo gpt ;;
    *--target=partuuid*) echo $partuuid ;;
esac
END
chmod 755 "$root/run/grub/grub-probe"
printf 'export grub_probe=/run/grub/grub-probe\n. /usr/lib/grub/grub-mkconfig_lib\n' >"$root/run/grub/grub-mkconfig_lib"
pkgdatadir=/run/grub chroot "$root" grub-mkconfig >"$root/boot/grub/grub.cfg"
