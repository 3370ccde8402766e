# Put in front of every case by boot.py; runs in the machine, as root, with sh.

count=0
# The kernel writes no more to the console: its lines would cut ours in two.
dmesg -n 1

say() { printf '\nVMBAKE-TEST %s\n' "$*" >/dev/console; }

# check NAME COMMAND…: asserts that COMMAND succeeds.
check() {
    name=$1
    shift
    count=$((count + 1))
    if output=$("$@" 2>&1); then
        say "$name ok"
    else
        say "$name FAIL $(printf '%s' "$output" | tail -c 800 | tr -s '\r\n' '|')"
    fi
}

# silent COMMAND…: succeeds if COMMAND does and says nothing.
silent() {
    said=$("$@" 2>&1) && [ -z "$said" ] || { printf '%s\n' "$said"; return 1; }
}

# booted: waits for the end of the boot. A degraded end is an end as well: `failed_units` is what judges it.
booted() {
    timeout 600 systemctl is-system-running --wait >/dev/null
    case $(systemctl is-system-running) in running | degraded) ;; *) systemctl list-jobs; return 1 ;; esac
}

failed_units() { silent systemctl list-units --failed --plain --no-legend; }

# grown: the root partition reaches the end of the disk, and its file system the end of the partition.
grown() {
    partition=$(findmnt -no SOURCE /)
    sys=/sys/class/block/$(basename "$partition")
    disk=$(($(cat "$sys/../size") * 512))
    end=$((($(cat "$sys/start") + $(cat "$sys/size")) * 512))
    size=$(($(cat "$sys/size") * 512))
    blocks=$(stat -f -c %b /)
    usable=$((blocks * $(stat -f -c %S /)))
    echo "disk $disk, end of partition $end, partition $size, file system $usable"
    # sgdisk and growpart leave up to 1 MiB at the end; statfs counts neither the journal nor the inode tables.
    [ $((disk - end)) -le 1100000 ] && [ $((usable * 100)) -ge $((size * 93)) ]
}

# machine: what every cloud image must do, baked or not.
machine() {
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
}

finish() {
    say "done $count"
    sleep 1
    systemctl poweroff
}
