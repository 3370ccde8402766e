#!/usr/bin/env python3
"""revision.py VMBAKE BASE_IMAGE BASE ROOTFS_TAR MANIFEST STORE: bakes a node on a base that has its packages in an earlier revision, as a base from before
a point release has them, and has dpkg.sh compare the image with what the real dpkg makes of that base. A base with a later revision is refused.

BASE_IMAGE is the example base-image, which writes the root file system of a disk. MANIFEST pins the packages, whose blobs are in STORE. Needs root, for chroot.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import disk
from harness.report import case, failures, skip

HERE = pathlib.Path(__file__).resolve().parent
NAME = "node.debian-13.amd64"
UUID = "6b5d9a1e-20f3-4f6e-8d1b-7c9e0b3a5d42"
# How the version of a package becomes that of another revision.
EARLIER, LATER = "~0", "+1"


def rebuild(deb, suffix, names, folder):
    """The package in another revision; where it needs another one of `names` in exactly its version, it needs that revision."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    disk.call("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN/control"
    text = re.sub(r"^(Version: .*)$", rf"\g<1>{suffix}", control.read_text(), flags=re.MULTILINE)
    exact = rf"\b({'|'.join(map(re.escape, names))}) \(= ([^)]+)\)"
    control.write_text(re.sub(exact, rf"\g<1> (= \g<2>{suffix})", text))
    disk.call("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, folder / f"{deb.name}.deb")


def root(rootfs, debs, suffix, work):
    """The root file system with the packages in another revision, installed by its own dpkg."""
    tree = work / f"root{suffix}"
    tree.mkdir()
    disk.call("tar", "-C", tree, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xpf", rootfs)
    (tree / "debs").mkdir()
    names = [disk.call("dpkg-deb", "-f", deb, "Package").strip() for deb in debs]
    for deb in debs:
        rebuild(deb, suffix, names, tree / "debs")
    shutil.rmtree(tree / "debs/tree")
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    disk.call("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "chroot", tree, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
              "DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", "dpkg --force-unsafe-io -i /debs/*.deb")
    policy.unlink()
    shutil.rmtree(tree / "debs")
    tar = work / f"root{suffix}.tar"
    disk.call("tar", "-C", tree, "--numeric-owner", "--xattrs", "--xattrs-include=*", "--format=pax", "-cpf", tar, ".")
    shutil.rmtree(tree)
    return tar


def main(vmbake, base_image, base, rootfs, manifest, store):
    if os.getuid() != 0:
        sys.exit(skip("needs root"))
    document = json.loads(pathlib.Path(manifest).read_text())
    blobs = pathlib.Path(store) / "blobs"
    dependencies = document["vmconfig"]["dependencies"]
    debs = [blobs.joinpath(*item["digest"].split(":")) for item in dependencies.values() if item["type"] == "deb"]
    for key in ("image", "boot"):
        document["vmconfig"]["os"].pop(key, None)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        unpinned = work / f"{NAME}.json"
        unpinned.write_text(json.dumps(document))
        disk.call("qemu-img", "convert", "-O", "raw", base, work / "base.raw")

        def bake(suffix):
            tar = root(rootfs, debs, suffix, work)
            image = work / f"base{suffix}.qcow2"
            disk.call(base_image, work / "base.raw", tar, UUID, image)
            out = work / f"out{suffix}"
            command = [vmbake, "bake", "node", "--manifest", unpinned, "--base", image, "--offline", "--store", store, "--format", "raw", "--out", out]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            return tar, out / f"{NAME}.raw", done

        tar, image, done = bake(EARLIER)
        case(f"{len(debs)} packages in an earlier revision are upgraded", done.returncode == 0 and len(debs) > 8, done.stdout)
        if done.returncode == 0:
            done = subprocess.run([HERE / "dpkg.sh", tar, unpinned, image, store], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            case("dpkg upgrades them to the same files and records", done.returncode == 0, done.stdout)
            status = work / "status"
            status.write_bytes(subprocess.check_output([vmbake, "cat", image, "/var/lib/dpkg/status"]))
            left = [line for line in status.read_text().split("\n") if line.startswith("Version: ") and line.endswith(EARLIER)]
            case("no package has the earlier revision", not left, left)
            done = subprocess.run(["apt-get", "check", "-o", f"Dir::State::status={status}", "-o", "Debug::NoLocking=1"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            case("apt-get check finds no unmet dependency", done.returncode == 0, done.stdout)
            image.unlink()
        _, _, done = bake(LATER)
        case("a later revision is not downgraded", done.returncode != 0 and "refusing to downgrade" in done.stdout, done.stdout)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
