#!/bin/bash
# virt-customize.sh BASE SIZE SITE LAYERS OUT: libguestfs, for a node of the control plane as qcow2: virt-customize boots its appliance with the
# disk, copies the artifacts of SITE in and runs the installer (tests/harness/install.sh) there, and qemu-img compresses the disk.
# It works in the folder of OUT. Without KVM, set LIBGUESTFS_BACKEND_SETTINGS=force_tcg.
#
# It does less than the others: the file system keeps its size, as virt-resize would write the whole disk once more.
set -euo pipefail
base=$1 size=$2 site=$3 layers=$4 out=$5 here=$(dirname "$(realpath "$0")")
work=$(mktemp -d -p "$(dirname "$out")")
trap 'rm -rf --one-file-system "$work"' EXIT
export LIBGUESTFS_BACKEND=direct

qemu-img convert -O qcow2 "$base" "$work/disk"
qemu-img resize -q "$work/disk" "$size"
mkdir "$work/artifacts"
cp -r "$site" "$work/artifacts/site"
cp -r "$layers" "$work/artifacts/layers"
cp "$here/../../tests/harness/install.sh" "$work/artifacts"
virt-customize --quiet --format qcow2 --add "$work/disk" --no-network --copy-in "$work/artifacts:/var/tmp" \
    --run-command "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH /var/tmp/artifacts/install.sh / /var/tmp/artifacts/site /var/tmp/artifacts/layers" \
    --delete /var/tmp/artifacts
qemu-img convert -c -O qcow2 -o compression_type=zstd "$work/disk" "$out"
