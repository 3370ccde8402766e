# What every cloud image must do, baked or not.
# boot: grow 2G
# boot: expect vmbake-test login:

check booted booted
check failed-units failed_units
check grown grown
check hostname [ "$(hostname)" = vmbake-test ]
check machine-id grep -qE '^[0-9a-f]{32}$' /etc/machine-id
check cloud-init cloud-init status
check address sh -c 'ip -4 -brief address show scope global | grep -q 10.0.2.15'
check esp mountpoint /boot/efi
check dpkg-audit silent dpkg --audit
check dpkg-verify silent dpkg --verify
check apt-check apt-get check
