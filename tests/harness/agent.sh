# Runs in the machine as root: takes scripts from the virtio port of vm.py, and returns their results.
# A request is a line, `request ID SECONDS BYTES BYTES`, then a script and its standard input, of so many bytes each. The answer is a
# line, `answer ID STATUS BYTES`, then the output. Nothing is quoted or escaped: any bytes get through.
work=/run/vmbake-test
mkdir -p "$work"
# On a busy host systemd may take longer than 25 s to answer; each script has its own limit.
export SYSTEMD_BUS_TIMEOUT=300
# There is no udev yet that would have named the port.
for name in /sys/class/virtio-ports/*/name; do
    [ "$(cat "$name")" != vmbake-test ] || port=${name%/name}
done
exec 3<>"/dev/${port##*/}"
printf 'ready %s\n' "$(cat /proc/sys/kernel/random/boot_id)" >&3
while read -r _ id seconds script input <&3; do
    head -c "$script" <&3 >"$work/script"
    head -c "$input" <&3 >"$work/input"
    timeout -k 5 "$seconds" sh "$work/script" <"$work/input" >"$work/output" 2>&1 3>&-
    status=$?
    printf 'answer %s %s %s\n' "$id" "$status" "$(stat -c %s "$work/output")" >&3
    cat "$work/output" >&3
done
