#!/bin/bash
# rootless.sh BASE SIZE SITE LAYERS OUT: the classic way of an ordinary user, for a node of the control plane as qcow2: the root file system
# is extracted from the base, the artifacts of SITE are unpacked into it below fakeroot, mke2fs -d makes a new file system of it, that takes
# the place of the old one on the disk, and qemu-img compresses the disk. It works in the folder of OUT.
#
# It does less than the others: without chroot no maintainer script runs and dpkg's database is not kept, and file capabilities are lost.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
base=$1 size=$2 site=$3 layers=$4 out=$5 here=$(dirname "$(realpath "$0")")
work=$(mktemp -d -p "$(dirname "$out")")
trap 'rm -rf --one-file-system "$work"' EXIT
source "$here/disk.sh"

# fill ROOT: what tests/harness/install.sh does, as far as that goes without chroot.
fill() {
    local root=$1 name
    for name in podplane:900 nstance-agent:901 fluent-bit:902 kube2iam:903 containerd:904 zot:905 netsy:906 kube-apiserver:907 \
        kube-scheduler:908 kube-controller-manager:909; do
        groupadd --prefix "$root" --system --gid "${name#*:}" "${name%:*}"
        useradd --prefix "$root" --system --uid "${name#*:}" --gid "${name#*:}" --create-home --shell /usr/sbin/nologin "${name%:*}"
    done
    for name in "$site"/*.deb; do dpkg-deb --extract "$name" "$root"; done
    while read -r name directory; do
        mkdir -p "$root$directory"
        tar -C "$root$directory" --no-same-owner -xpzf "$site/$name"
    done <<'ARCHIVES'
containerd /usr/local
crictl /usr/local/bin
cni-plugins /opt/cni/bin
nstance-agent /opt/nstance-agent/bin
kube2iam /opt/kube2iam/bin
netsy /opt/netsy/bin
ARCHIVES
    install -D -m 0755 "$site/runc" "$root/usr/local/sbin/runc"
    for name in zot kubelet kubectl kube-apiserver kube-controller-manager kube-scheduler; do
        install -D -m 0755 "$site/$name" "$root/usr/bin/$name"
    done
    for name in "$layers"/*/files; do cp -r --no-preserve=ownership "$name/." "$root"; done
    install -D -m 0755 "$site/firstboot" "$root/opt/podplane/bin/firstboot"
    systemctl --quiet --root="$root" enable first-boot-env.service containerd.service kubelet.service nstance-agent.service \
        kube-apiserver.service kube-controller-manager.service kube-scheduler.service
}

grown "$base" "$size" "$work/disk"
dd if="$work/disk" of="$work/old" bs=1M conv=sparse iflag=skip_bytes,count_bytes skip=$((start * 512)) count=$((length * 512)) status=none
mkdir "$work/root"
export work site layers length
fakeroot -- bash -euo pipefail -c "$(declare -f fill)"'
    debugfs -R "rdump / $work/root" "$work/old" 2>/dev/null
    fill "$work/root" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    mke2fs -q -F -t ext4 -b 4096 -d "$work/root" "$work/new" $((length * 512 / 4096))
'
dd if="$work/new" of="$work/disk" bs=1M conv=sparse,notrunc oflag=seek_bytes seek=$((start * 512)) status=none
compressed "$work/disk" "$out"
