#!/bin/bash
# mounts.sh VMBAKE: bakes an image of a base whose root file system the kernel filled, without any artifact, mounts
# both and compares every path: type, mode, owner, time in nanoseconds, size, link target, device number, number of links,
# extended attributes, content. The results of our reader and writer must equal the kernel's view.
# Needs root, for the mounts.
set -euo pipefail
vmbake=$(realpath "$1") here=$(dirname "$(realpath "$0")")
. "$here/skip.sh"
if [ "$(id -u)" != 0 ]; then
    skip mounts.sh "needs root"
    exit
fi
base=$("$here/../tools/base-image/build.sh" --kernel-filled)
work=$(mktemp -d)
finish() {
    for side in base baked; do
        ! mountpoint -q "$work/$side" || umount "$work/$side"
    done
    rm -rf "$work"
}
trap finish EXIT

# A kind of nothing but hygiene.
mkdir -p "$work/layers/plain" "$work/base" "$work/baked"
cp -r "$here/../layers/hygiene" "$work/layers/"
echo '{"name": "plain", "version": "1", "description": "Nothing.", "os": ["debian-13"]}' >"$work/layers/plain/layer.json"
echo '{"vmconfig": {"version": "dev", "kind": "plain", "os": {"name": "debian-13", "arch": "amd64"}, "dependencies": {}}}' \
    >"$work/manifest.json"
"$vmbake" bake plain --offline --base "$base" --layers "$work/layers" --manifest "$work/manifest.json" \
    --store "$work/store" --out "$work" --format raw
qemu-img convert -O raw "$base" "$work/base.raw"

root=$((262144 * 512))
mount -o "loop,ro,noload,offset=$root" "$work/base.raw" "$work/base"
mount -o "loop,ro,noload,offset=$root" "$work/plain.debian-13.amd64.raw" "$work/baked"
for side in base baked; do
    (
        cd "$work/$side"
        # Sizes and link counts of directories depend on the layout, so only those of other nodes are compared.
        find . -path ./lost+found -prune -o -type d -printf '%p %y %m %U %G %T@\n' \
            -o -printf '%p %y %m %U %G %T@ %s %n %l\n' | sort
        find . -xdev \( -type b -o -type c \) -exec stat -c '%n %t %T' {} + | sort
        getfattr --absolute-names -h -R -d -m - -e hex . 2>/dev/null
        find . -path ./lost+found -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
    ) >"$work/$side.list"
done

# What the hygiene layer removes or writes on this base; everything else must be equal.
allowed='\./(etc/(os-release|machine-id|[a-z]+-|\.pwd\.lock)|var/(lib/(cloud|dpkg/(status|diversions|statoverride)-old)|cache/apt/[a-z]+\.bin|log/[a-z./]+)|tmp|root/\.cache)'
if diff "$work/base.list" "$work/baked.list" | grep '^[<>]' | grep -vE "$allowed" >"$work/differences"; then
    echo "FAIL: mounts:"
    head -n 20 "$work/differences"
    exit 1
fi
echo "ok: the kernel sees the same $(wc -l <"$work/base.list") lines of metadata, attributes and digests in base and baked image"
