# A baked image of kind `node`: what every cloud image does, and a container without any download.
# boot: grow 2G
# boot: expect vmbake-test login:
# boot: expect vmbake-firstboot: configured node

check booted booted
check failed-units failed_units
check grown grown
check hostname [ "$(hostname)" = vmbake-test ]
check machine-id grep -qE '^[0-9a-f]{32}$' /etc/machine-id
check cloud-init cloud-init status
check address sh -c 'ip -4 -brief address show scope global | grep -q 10.0.2.15'
check esp mountpoint /boot/efi
check os-release grep -qx 'IMAGE_ID="\?node"\?' /etc/os-release

# The first-boot program ran once, left its record, and said so (its line is an `expect` above).
check firstboot-unit [ "$(systemctl show -P Result -P ActiveState vmbake-firstboot.service | tr '\n' ' ')" = "success active " ]
check firstboot-again systemctl restart vmbake-firstboot.service

# The package manager sees packages that it could have installed itself.
check dpkg-audit silent dpkg --audit
check dpkg-verify silent dpkg --verify
check apt-check apt-get check
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
    ctr image import /usr/share/vmbake/images/busybox.tar || return 1
    said=$(ctr run --rm docker.io/library/busybox:baked t /bin/busybox echo hello-from-container 2>&1)
    echo "$said"
    [ "$said" = hello-from-container ]
}
check containerd-enabled systemctl is-enabled containerd.service
check containerd-active systemctl is-active containerd.service
check container container
