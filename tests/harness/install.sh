#!/bin/bash
# install.sh ROOT SITE LAYERS: makes a node of kind `knc` in ROOT, a directory with the base's root file system, the ordinary way: dpkg,
# useradd, tar, install and systemctl do it. It specifies all locations a second time on purpose, with standard
# commands: test_kinds.py compares the result with vmbake's image.
# SITE holds the artifacts by their names; of LAYERS only the files that a layer brings itself are copied. The users are as old
# as SOURCE_DATE_EPOCH says. Needs root.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
root=$1 site=$2 layers=$3

# An own network, and own processes that end with it; they cannot talk to the systemd of a machine that runs this.
inside() { unshare --mount --net --pid --fork --kill-child chroot "$root" /usr/bin/env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive \
    SYSTEMD_OFFLINE=1 SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "$@"; }
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3

# Users, before the packages.
service() {
    local name=$1 id=$2 groups=$3
    inside groupadd --system --gid "$id" "$name"
    inside useradd --system --uid "$id" --gid "$name" --groups "$groups" --create-home --shell /usr/sbin/nologin "$name"
}
service podplane 900 ''
service fluent-bit 902 podplane,systemd-journal
service zot 905 podplane
service kube2iam 903 podplane
service containerd 904 podplane
service nstance-agent 901 podplane
service netsy 906 podplane
service kube-apiserver 907 podplane
service kube-controller-manager 909 podplane
service kube-scheduler 908 podplane
inside groupadd --gid 1000 kubelet
inside useradd --uid 1000 --gid kubelet --groups podplane,containerd --create-home --shell /usr/sbin/nologin \
    --key SUB_UID_COUNT=0 --key SUB_GID_COUNT=0 kubelet
inside usermod --add-subuids 65536-7274495 --add-subgids 65536-7274495 kubelet

# Packages.
mkdir "$root/debs"
cp "$site"/*.deb "$root/debs"
inside sh -c 'dpkg --force-unsafe-io -i /debs/*.deb' >"$site/dpkg.log" 2>&1 || { cat "$site/dpkg.log"; exit 1; }
rm -r "$root/debs" "$root/usr/sbin/policy-rc.d"

# Archives and programs.
unpack() {
    mkdir -p "$root$2"
    tar -C "$root$2" --no-same-owner -xpzf "$site/$1" "${@:3}"
}
unpack containerd /usr/local bin/containerd bin/containerd-shim-runc-v2 bin/ctr
unpack crictl /usr/local/bin crictl
unpack cni-plugins /opt/cni/bin
unpack nstance-agent /opt/nstance-agent/bin nstance-agent
unpack kube2iam /opt/kube2iam/bin kube2iam
program() { install -D -m 0755 -o root -g root "$site/$1" "$root$2"; }
program runc /usr/local/sbin/runc
program zot /usr/bin/zot
program kubelet /usr/bin/kubelet
unpack netsy /opt/netsy/bin netsy
for name in kubectl kube-apiserver kube-controller-manager kube-scheduler; do program "$name" "/usr/bin/$name"; done
chmod 0755 "$(realpath "$root"/usr/lib/*/libpq.so.5)" "$(realpath "$root"/usr/lib/*/libsubid.so.5)"

# Files of the layers: units, configuration, defaults.
names=(vm podplane nstance-agent fluent-bit kube2iam containerd container-images zot kubelet kube-apiserver
    kube-controller-manager kube-scheduler netsy)
for name in "${names[@]}"; do
    (cd "$layers/$name/files" 2>/dev/null && find . -type f -exec install -D -m 0644 {} "$root/{}" \;)
done
pause=$(cat "$site/pause")
sed -i "s|@{image:registry.k8s.io/pause}|$pause|" "$root/opt/podplane/share/templates/containerd-config.toml"
install -D -m 0755 "$site/firstboot" "$root/opt/podplane/bin/firstboot"
for name in bootstrap configure install nstance-recv-watch permissions restart update-mutable-env; do
    ln -s firstboot "$root/opt/podplane/bin/$name.sh"
done
mkdir -p "$root/opt/podplane/lib/configure"
ln -s ../../bin/firstboot "$root/opt/podplane/lib/configure/hosts.sh"
install -m 0644 "$site/manifest.json" "$root/opt/podplane/share/vmconfig-installed.json"

# Directories: mode, owner, group, paths.
own() {
    local mode=$1 owner=$2 group=$3
    shift 3
    inside install -d -m "$mode" -o "$owner" -g "$group" "$@"
}
own 0755 root root /etc /etc/containerd /etc/containerd/certs.d /opt/podplane/bin /opt/podplane/lib /opt/podplane/lib/configure \
    /opt/podplane/share /opt/podplane/share/defaults
own 0750 root podplane /opt /opt/podplane /opt/crt /opt/pub /opt/env
own 0710 root podplane /opt/key
own 0700 root root /opt/podplane/etc /opt/bin /opt/versions /opt/cni
own 0700 nstance-agent nstance-agent /opt/nstance-agent{,/identity,/keys,/recv}
own 0700 fluent-bit fluent-bit /opt/fluent-bit /var/lib/fluent-bit
own 0700 kube2iam kube2iam /opt/kube2iam
own 0700 kubelet kubelet /opt/kubelet
own 0750 kubelet kubelet /var/lib/kubelet /var/log/containers /var/log/pods
own 0700 zot zot /opt/zot /opt/zot/etc /opt/zot/storage
for service in kube2iam kubelet containerd; do own 0750 root "$service" "/opt/key/$service"; done
own 0750 root zot /opt/key/registry
own 0700 netsy netsy /opt/data /opt/netsy
own 0750 root netsy /opt/netsy/etc /opt/key/netsy
for service in kube-apiserver kube-controller-manager kube-scheduler; do
    own 0700 "$service" "$service" "/opt/$service"
    own 0750 root "$service" "/opt/key/$service"
done

# Units, by the systemctl of the node itself.
units=(first-boot-again.service first-boot-env.service first-boot-retry.timer first-boot-user-data.path hosts-refresh.timer nstance-agent.service
    nstance-recv-watch.path nstance-recv-watch.service nstance-recv-watch.timer containerd.service container-images.service
    kubelet.service kube-apiserver.service kube-controller-manager.service kube-scheduler.service)
inside systemctl enable "${units[@]}" >"$site/systemctl.log" 2>&1 || { cat "$site/systemctl.log"; exit 1; }
# Host keys of machines on which cloud-init is off.
cat >"$root/usr/lib/systemd/system/vmbake-ssh-host-keys.service" <<'END'
[Unit]
Description=Generate missing SSH host keys
ConditionPathExists=/run/cloud-init/disabled
ConditionPathExistsGlob=!/etc/ssh/ssh_host_*_key
After=cloud-init.service cloud-init-network.service
Before=ssh.service sshd.service sshd@.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/ssh-keygen -A
END
inside systemctl --quiet add-wants ssh.service vmbake-ssh-host-keys.service
inside ldconfig
