#!/bin/bash
# dpkg.sh ROOTFS_TAR MANIFEST IMAGE_RAW STORE: lets the real dpkg install the manifest's packages into the base's root file
# system, and compares the result with the baked image. Where dpkg would prompt, existing files are kept.
# Needs root, for chroot and a read-only loop mount.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
. "$(dirname "$0")/skip.sh"
if [ "$(id -u)" != 0 ]; then
    skip dpkg.sh "needs root"
    exit
fi
[ $# = 4 ] || { echo "usage: dpkg.sh ROOTFS_TAR MANIFEST IMAGE_RAW STORE" >&2; exit 2; }
rootfs=$1 manifest=$2 image=$3 blobs=$4/blobs
work=$(mktemp -d)
cleanup() {
    if mountpoint -q "$work/image"; then umount "$work/image"; fi
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
mkdir "$work/root" "$work/image"

tar -C "$work/root" --numeric-owner --xattrs --xattrs-include='*' -xpf "$rootfs"
mkdir "$work/root/debs"
/usr/bin/python3 - "$manifest" <<'PY' | while read -r name algorithm hex; do cp "$blobs/$algorithm/$hex" "$work/root/debs/$name.deb"; done
import json, sys
for name, item in json.load(open(sys.argv[1]))["vmconfig"]["dependencies"].items():
    if item["type"] == "deb":
        print(name, *item["digest"].split(":"))
PY
# What an older version has and the new one lacks is compared too.
cp -r "$work/root/var/lib/dpkg/info" "$work/before"
# No service is started: invoke-rc.d asks this program, and deb-systemd-invoke sees no running systemd.
printf '#!/bin/sh\nexit 101\n' >"$work/root/usr/sbin/policy-rc.d"
chmod 0755 "$work/root/usr/sbin/policy-rc.d"
[ -e "$work/root/dev/null" ] || mknod -m 666 "$work/root/dev/null" c 1 3
# An own network namespace, mount namespace and process tree: what a script might start ends with it.
unshare --mount --net --pid --fork --kill-child chroot "$work/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    DEBIAN_FRONTEND=noninteractive /bin/sh -c 'dpkg --force-unsafe-io --force-confold -i /debs/*.deb' >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}

start=$(sgdisk -i 1 "$image" | awk '/^First sector/ {print $3}')
mount -o "ro,noload,loop,offset=$((start * 512))" "$image" "$work/image"

/usr/bin/python3 - "$work/root" "$work/image" "$work/before" <<'PY'
import difflib, glob, hashlib, os, re, stat, subprocess, sys

dpkg, image, before = sys.argv[1:]

# Differences that are meant, each with its reason: (path, properties that may differ, reason). A difference that is
# not here fails the check, and so does a line here that no difference needs.
ALLOWED = [
    ("/etc/systemd/system/(multi-user|sysinit|timers)[.]target[.]wants/first-boot-((again|env)[.]service|retry[.]timer|user-data[.]path)", "type",
     "the vm layer enables its own units, which are in no package"),
    ("/etc/systemd/system/ssh[.]service[.]wants/vmbake-ssh-host-keys[.]service", "type",
     "the bake enables its unit for host keys, which is in no package"),
]


def inside(root, path):
    """The path on this machine, with links of the directories followed inside of the root."""
    parent, name = os.path.split(path)
    done = root
    parts = [part for part in parent.split("/") if part]
    for _ in range(400):
        if not parts:
            return os.path.join(done, name)
        part = parts.pop(0)
        here = os.path.join(done, part) if part != ".." else max(os.path.dirname(done), root, key=len)
        if os.path.islink(here):
            target = os.readlink(here)
            done = root if target.startswith("/") else done
            parts = [step for step in target.split("/") if step and step != "."] + parts
        else:
            done = here
    sys.exit(f"{path}: too many links")


def describe(root, path, times):
    here = inside(root, path)
    try:
        meta = os.lstat(here)
    except FileNotFoundError:
        return {"type": "missing"}
    found = {"type": stat.S_IFMT(meta.st_mode), "mode": oct(stat.S_IMODE(meta.st_mode)),
             "owner": (meta.st_uid, meta.st_gid), "links": 0}
    if stat.S_ISREG(meta.st_mode):
        with open(here, "rb") as file:
            found["content"] = (meta.st_size, hashlib.sha256(file.read()).hexdigest())
        found["links"] = meta.st_nlink
        if times:
            found["mtime"] = int(meta.st_mtime)
    if stat.S_ISLNK(meta.st_mode):
        found["target"] = os.readlink(here)
        if times:
            found["mtime"] = int(meta.st_mtime)
    if not stat.S_ISLNK(meta.st_mode):
        found["xattrs"] = {name: os.getxattr(here, name) for name in os.listxattr(here)}
    return found


def below(directory):
    """Every path below a directory, in either tree."""
    found = set()
    for root in dpkg, image:
        for path, directories, files in os.walk(root + directory):
            found.update(os.path.join(path, name)[len(root):] for name in directories + files)
    return found


def show(path, name):
    """How two texts differ."""
    if name != "content":
        return
    texts = [open(inside(root, path), "rb").read() for root in (dpkg, image)]
    if all(b"\0" not in text and len(text) < 8 << 20 for text in texts):
        lines = [text.decode("utf-8", "replace").splitlines() for text in texts]
        diff = difflib.unified_diff(*lines, "dpkg", "image", n=1, lineterm="")
        print("\n".join("    " + line for line, _ in zip(diff, range(40))))


names = [subprocess.check_output(["dpkg-deb", "--field", deb, "Package"], text=True).strip()
         for deb in sorted(glob.glob(dpkg + "/debs/*.deb"))]
info = {path for path in below("/var/lib/dpkg/info") if re.split(r"[:.]", os.path.basename(path))[0] in names}
listed = set()
for path in info:
    if path.endswith(".list"):
        for root in dpkg, image:
            if os.path.exists(root + path):
                listed.update(open(root + path).read().split("\n"))
for path in glob.glob(before + "/*.list"):
    if re.split(r"[:.]", os.path.basename(path))[0] in names:
        listed.update(open(path).read().split("\n"))
listed.discard("")
state = {"/var/lib/dpkg/status", "/var/lib/dpkg/diversions", "/var/lib/dpkg/statoverride"} | info
for directory in ("/var/lib/dpkg/alternatives", "/var/lib/dpkg/triggers", "/etc/alternatives", "/etc/systemd/system",
                  "/var/lib/systemd/deb-systemd-helper-enabled", "/var/lib/systemd/deb-systemd-helper-masked"):
    state |= below(directory)

used, failures = set(), 0
for path in sorted(state | listed):
    times = path in listed
    left, right = describe(dpkg, path, times), describe(image, path, times)
    keys = ["type"] if left["type"] != right["type"] else sorted(left.keys() | right.keys())
    for key in keys:
        if left.get(key) == right.get(key):
            continue
        match = [line for line in ALLOWED if re.fullmatch(line[0], path) and key in line[1].split()]
        used.update(match[:1])
        if not match:
            failures += 1
            print(f"{path}: {key}: dpkg {left.get(key)!r}, image {right.get(key)!r}")
            show(path, key)
for line in ALLOWED:
    if line not in used:
        failures += 1
        print(f"allowed without need: {line[0]} ({line[1]}): {line[2]}")
if len(names) < 1 or len(listed) < len(names):
    sys.exit("nothing was compared")
if failures:
    sys.exit(f"{failures} differences")
print(f"ok: {len(names)} packages, {len(listed)} paths, {len(state)} files of dpkg's and systemd's state as dpkg "
      f"installs them; {len(used)} differences are meant")
PY
