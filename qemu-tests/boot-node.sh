#!/bin/bash
# boot-node.sh IMAGE: boots a baked image of kind `node` under SeaBIOS and OVMF at the same time, and asserts what a node must do.
# The console of each boot is kept beside IMAGE.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
image=$1 status=0
pids=()
for firmware in bios uefi; do
    "$here/boot.py" --firmware "$firmware" --log "${image%.*}.$firmware.log" "$image" "$here/cases/node.sh" | sed -u "s/^/$firmware /" &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
exit "$status"
