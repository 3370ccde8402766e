# Runs in the machine as root until shutdown. judge NUMBER QUESTION ARGUMENT reports changes of a check.
cd /run/vmbake-check || exit
modprobe -q virtio_console
for tries in 1 2 3 4 5 6 7 8 9 10; do
    for name in /sys/class/virtio-ports/*/name; do
        [ "$(cat "$name")" != vmbake.check ] || port=${name%/name}
    done
    [ -z "${port-}" ] || break
    sleep 1
done
exec 3>"/dev/${port##*/}" || exit

judge() {
    "$2" "$3" >said 2>&1 </dev/null 3>&-
    case $? in 0) state=ok ;; 1) state=pending ;; *) state=failed ;; esac
    head -c 4096 said >said.short
    new="$state $(cksum <said.short)"
    [ "$(cat "last.$1" 2>/dev/null)" != "$new" ] || return 0
    echo "$new" >"last.$1"
    { echo "$state $1 $(stat -c %s said.short)"; cat said.short; } >&3
}

# Property output of old systemctl versions as well.
property() {
    systemctl show --property "$2" -- "$1" | sed "s/^$2=//"
}

unit() {
    active=$(property "$1" ActiveState)
    echo "$active ($(property "$1" SubState)), result $(property "$1" Result)"
    case $active in
        active) return 0 ;;
        failed) ;;
        inactive)
            # A oneshot unit.
            [ "$(property "$1" Type)" = oneshot ] && [ "$(property "$1" ConditionResult)" = yes ] &&
                [ "$(property "$1" ExecMainExitTimestampMonotonic)" != 0 ] && return 0
            [ "$(property "$1" LoadState)" = loaded ] && return 1
            echo "it is $(property "$1" LoadState)"
            ;;
        *) return 1 ;;
    esac
    journalctl --quiet --no-pager --output cat --lines 10 --unit "$1"
    return 2
}

file() {
    [ -e "$1" ] || { echo "does not exist"; return 1; }
}

run() {
    timeout 60 sh -c "$1" && return 0
    echo "exit status $?"
    return 1
}

no_failed_units() {
    failed=$(systemctl list-units --failed --plain --no-legend --full | cut -d' ' -f1)
    [ -n "$failed" ] || return 0
    for name in $failed; do
        echo "$name:"
        journalctl --quiet --no-pager --output cat --lines 5 --unit "$name"
    done
    return 2
}

boot() {
    echo "$1"
}

judge 0 boot "the machine boots"
# --wait is unknown before version 240, which fails immediately.
state=$(systemctl is-system-running --wait 2>&1)
judge 0 boot "$state"
