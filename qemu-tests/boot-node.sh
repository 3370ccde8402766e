#!/bin/bash
# boot-node.sh IMAGE: boots a baked image of kind `node` under SeaBIOS and OVMF, and asserts what a node must do.
# The console of each boot is kept beside IMAGE.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
image=$1 status=0
for firmware in bios uefi; do
    "$here/boot.py" --firmware "$firmware" --log "${image%.*}.$firmware.log" "$image" "$here/cases/node.sh" || status=1
done
exit "$status"
