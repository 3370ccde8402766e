# A baked image of kind `node`: what every cloud image does, and a container without any download.
# boot: grow 2G
# boot: expect vmbake-test login:
# boot: expect vmbake-firstboot: configured node

machine
check os-release grep -qx 'IMAGE_ID="\?node"\?' /etc/os-release

# The first-boot program ran once, left its record, and said so (its line is an `expect` above).
check firstboot-unit [ "$(systemctl show -P Result -P ActiveState first-boot-env.service | tr '\n' ' ')" = "success active " ]
check firstboot-again systemctl restart first-boot-env.service

# The packages are installed, as the package manager sees it.
for package in containerd runc containernetworking-plugins iptables; do
    check "installed-$package" [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package")" = "ii " ]
done

# Every library of every baked program is found.
linked() {
    for program in /usr/bin/containerd /usr/bin/ctr /usr/sbin/runc /usr/sbin/iptables; do
        # ldd fails on static programs.
        ! ldd "$program" 2>/dev/null | grep 'not found' || return 1
    done
}
check libraries linked
check iptables iptables --version

container() {
    install -D /bin/busybox /var/lib/vmbake-test/bin/busybox || return 1
    said=$(ctr run --rm --rootfs /var/lib/vmbake-test t /bin/busybox echo hello-from-container 2>&1)
    echo "$said"
    [ "$said" = hello-from-container ]
}
check containerd-enabled systemctl is-enabled containerd.service
check containerd-active systemctl is-active containerd.service
check container container
