#!/bin/bash
# official.sh ROOT: gives the root file system ROOT the files and the enabled units of Debian's own genericcloud image.
# Part of customize.sh: ROOT can be entered with chroot.
set -euo pipefail
root=$1
cd "$root/etc"
mkdir -p apt/mirrors default/grub.d
# Reserved names (RFC 2606) in place of Debian's mirrors: no test may reach an archive that apt on this machine does not name.
echo https://archive.example/debian >apt/mirrors/debian.list
echo https://archive.example/debian-security >apt/mirrors/debian-security.list
echo '# See /etc/apt/sources.list.d/debian.sources' >apt/sources.list
sources() {
    printf '%s\n' 'Types: deb deb-src' "URIs: mirror+file:///etc/apt/mirrors/$1.list" "Suites: $2" 'Components: main' \
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg'
}
{ sources debian 'trixie trixie-updates trixie-backports'; echo; sources debian-security trixie-security; } >apt/sources.list.d/debian.sources
printf 'ID=genericcloud\nVERSION="20260101-1"\n' >cloud-release
# Two keys are there twice, as in the original: a reader of YAML must expect that.
cat >cloud/cloud.cfg.d/01_debian_cloud.cfg <<'END'
apt:
  generate_mirrorlists: true

system_info:
  default_user:
    name: debian
    sudo: ALL=(ALL) NOPASSWD:ALL
    shell: /bin/bash
    lock_passwd: True
    gecos: Debian
    groups: [adm, audio, cdrom, dialout, dip, floppy, plugdev, sudo, video]
    sudo: ["ALL=(ALL) NOPASSWD:ALL"]
    shell: /bin/bash
END
printf 'GRUB_DISABLE_LINUX_UUID=true\nGRUB_DISABLE_LINUX_PARTUUID=\n' >default/grub.d/10_cloud.cfg
echo GRUB_TIMEOUT=0 >default/grub.d/15_timeout.cfg
: >grub.d/enable_cloud
printf 'blacklist %s\n' pcspkr floppy >modprobe.d/blacklist.conf
sed -i -e 's/^#PasswordAuthentication yes/PasswordAuthentication no/' -e '$a ClientAliveInterval 120' ssh/sshd_config
chroot "$root" systemctl enable systemd-networkd.service systemd-resolved.service
echo 'grub-efi-amd64 grub2/force_efi_extra_removable boolean true' | chroot "$root" debconf-set-selections
rm -f mailname apt/apt.conf.d/99mmdebstrap
: >"$root/var/lib/dpkg/available"
# Without the folders that apt makes itself.
find "$root/var/cache/apt" "$root/var/lib/apt/lists" -mindepth 1 -delete
