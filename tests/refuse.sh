#!/bin/bash
# refuse.sh VMBAKE BASE MANIFEST STORE: bakes from bad inputs. Each bake must fail with a clear message and exit code 1, without a
# panic, and leave nothing in its output directory.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") manifest=$(realpath "$3") store=$(realpath "$4")
. "$(dirname "$0")/skip.sh"
work=$(mktemp -d)
mounted=
finish() {
    [ -z "$mounted" ] || umount "$mounted"
    rm -rf "$work"
}
trap finish EXIT
# A manifest that does not pin the base, so that a damaged base is met by its readers and not by its digest.
/usr/bin/python3 - "$manifest" "$work/unpinned.json" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
del document["vmconfig"]["os"]["image"]
json.dump(document, open(sys.argv[2], "w"), indent=2, sort_keys=True)
END

failed=0
# refuse NAME EXPECTED ARGUMENTS…: bakes, and looks for EXPECTED (an extended regular expression) in the message.
refuse() {
    local name=$1 expected=$2 code=0
    shift 2
    rm -rf "$work/out"
    "$vmbake" bake node --offline --out "$work/out" "$@" >"$work/said" 2>&1 || code=$?
    if [ "$code" != 1 ] || ! grep -qE "$expected" "$work/said" || grep -q panicked "$work/said" ||
        [ -n "$(ls -A "$work/out" 2>/dev/null)" ]; then
        echo "FAIL: $name: exit code $code, left: $(ls -A "$work/out" 2>/dev/null)"
        cat "$work/said"
        failed=1
    else
        echo "ok: $name: $(grep -m 1 '^error' "$work/said")"
    fi
}
unpinned=(--manifest "$work/unpinned.json" --store "$store")

# The base of a recipe is there before anything is compiled.
if ! make --no-print-directory -C "$(dirname "$0")/.." -o firstboot base BASE="$work/none" >"$work/said" 2>&1 &&
    grep -qF "BASE=$work/none: no such file" "$work/said"; then
    echo "ok: missing base of a recipe: $(head -n 1 "$work/said")"
else
    echo "FAIL: missing base of a recipe:"
    cat "$work/said"
    failed=1
fi

# Damaged bases.
for part in 1 50 95; do
    head -c $(($(stat -c %s "$base") * part / 100)) "$base" >"$work/truncated.qcow2"
    refuse "qcow2 truncated to $part %" '\.qcow2' --base "$work/truncated.qcow2" "${unpinned[@]}"
done
cp --reflink=auto "$base" "$work/flipped.qcow2"
printf '\xff' | dd of="$work/flipped.qcow2" bs=1 seek=41 conv=notrunc status=none
refuse "qcow2 with a damaged header" 'flipped.qcow2' --base "$work/flipped.qcow2" "${unpinned[@]}"
qemu-img create -q -f qcow2 -b "$base" -F qcow2 "$work/overlay.qcow2"
refuse "qcow2 with a backing file" 'backing file' --base "$work/overlay.qcow2" "${unpinned[@]}"
qemu-img convert -O raw "$base" "$work/base.raw"
# flip NAME OFFSET EXPECTED: overwrites 64 bytes of a copy of the raw base.
flip() {
    cp --sparse=always "$work/base.raw" "$work/flip.raw"
    dd if=<(yes ' damaged ') of="$work/flip.raw" bs=1 count=64 seek="$2" conv=notrunc status=none
    refuse "$1" "$3" --base "$work/flip.raw" "${unpinned[@]}"
}
root=$((262144 * 512))
flip "ext4 with a damaged superblock" $((root + 1024 + 136)) 'superblock'
flip "ext4 with a damaged group descriptor" $((root + 4096)) 'group'
cp --sparse=always "$work/base.raw" "$work/flip.raw"
dd if=/dev/zero of="$work/flip.raw" bs=512 count=34 conv=notrunc status=none
dd if=/dev/zero of="$work/flip.raw" bs=512 count=33 seek=$((3221225472 / 512 - 33)) conv=notrunc status=none
refuse "disk without a partition table" 'GPT|partition' --base "$work/flip.raw" "${unpinned[@]}"
refuse "base that is not the pinned one" 'has digest|bytes' --base "$work/base.raw" --manifest "$manifest" --store "$store"
: >"$work/empty"
refuse "empty base" 'the file is empty' --base "$work/empty" "${unpinned[@]}"
xz -0kc "$work/empty" >"$work/base.raw.xz"
refuse "compressed base" "hint: unpack it: xz -dk" --base "$work/base.raw.xz" "${unpinned[@]}"
refuse "base that does not exist" 'No such file' --base "$work/missing" "${unpinned[@]}"

# Wrong requests.
refuse "size too small" 'needs|too small|bytes' --size 512M --base "$base" "${unpinned[@]}"
refuse "wrong architecture" 'is for node.debian-13.amd64' --arch arm64 --base "$base" "${unpinned[@]}"
# Nothing proves these packages for arm64: they are pinned manually, so that the base is met.
/usr/bin/python3 - "$work/unpinned.json" "$work/arm64.json" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
document["vmconfig"]["os"]["arch"] = "arm64"
for pinned in document["vmconfig"]["dependencies"].values():
    pinned.pop("proof")
json.dump(document, open(sys.argv[2], "w"))
END
echo '{"archives": {}, "systems": {}, "dependencies": []}' >"$work/none.json"
refuse "base of another architecture" 'image for amd64, expected arm64' --arch arm64 --base "$base" --manifest "$work/arm64.json" --no-builtin=sources --sources "$work/none.json" --store "$store"

# Bad manifests, artifacts and layers.
sed 's/"kind"/"kinds"/' "$work/unpinned.json" >"$work/bad.json"
refuse "manifest with an unknown key" 'bad.json:[0-9]+:[0-9]+' --base "$base" --manifest "$work/bad.json" --store "$store"
mkdir "$work/store"
cp -r "$store/blobs" "$work/store"
chmod -R u+w "$work/store"
# The largest artifact of the manifest: what else is in a store does not matter to a bake.
blob=$(/usr/bin/python3 - "$manifest" <<'END'
import json, sys
pinned = json.load(open(sys.argv[1]))["vmconfig"]["dependencies"].values()
print(max(pinned, key=lambda one: one["size"])["digest"].replace(":", "/"))
END
)
printf 'x' | dd of="$work/store/blobs/$blob" bs=1 seek=1000 conv=notrunc status=none
refuse "damaged artifact" 'has digest' --base "$base" --manifest "$work/unpinned.json" --store "$work/store"
rm "$work/store/blobs/$blob"
refuse "missing artifact" 'is not in the store' --base "$base" --manifest "$work/unpinned.json" --store "$work/store"
mkdir -p "$work/layers/node"
printf '{\n  "name": "node",\n  "nme": 1\n}\n' >"$work/layers/node/layer.json"
refuse "layer with an unknown key" 'layer.json:3:' --base "$base" --layers "$work/layers" "${unpinned[@]}"

# A full disk, and a kill in the middle of writing.
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$work/small"
    mount -t tmpfs -o size=64M tmpfs "$work/small"
    mounted=$work/small
    code=0
    "$vmbake" bake node --offline --out "$work/small" --base "$base" "${unpinned[@]}" >"$work/said" 2>&1 || code=$?
    if [ "$code" = 1 ] && grep -q 'hint: .*full' "$work/said" && [ -z "$(ls -A "$work/small")" ]; then
        echo "ok: full disk: $(grep -m 1 '^error' "$work/said")"
    else
        echo "FAIL: full disk: exit code $code, left: $(ls -A "$work/small")"
        cat "$work/said"
        failed=1
    fi
else
    skip "refuse.sh: full disk" "needs root for a small file system"
fi
# killed DELAY: kills a bake that long after it began to write; false if that was too late.
killed() {
    rm -rf "$work/out"
    "$vmbake" bake node --offline --out "$work/out" --base "$base" "${unpinned[@]}" >/dev/null 2>"$work/said" &
    local bake=$! code=0
    until grep -q authored "$work/said" 2>/dev/null || ! kill -0 $bake 2>/dev/null; do :; done
    sleep "$1"
    kill -KILL $bake 2>/dev/null || true
    wait $bake || code=$?
    [ "$code" = 137 ]
}
# A fast machine has written all of it in that time.
if (killed 0.3 || killed 0.1 || killed 0.03 || killed 0) 2>/dev/null && [ -z "$(ls -A "$work/out")" ]; then
    echo "ok: killed while writing: nothing left"
else
    echo "FAIL: killed while writing: left $(ls -A "$work/out")"
    failed=1
fi
exit $failed
