"""Packages as dpkg installs them, compared with an image: what it and systemd's scripts record, and each path of the packages. Needs root."""

import difflib
import os
import pathlib
import re
import shutil
import stat

from harness.mount import Mount
from harness.run import must
from harness.trees import describe

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Differences that are meant, each with its reason: (path, properties that may differ, reason). A difference that is
# not here fails the check, and so does a line here that no difference needs.
ALLOWED = [
    ("/etc/systemd/system/(multi-user|sysinit|timers)[.]target[.]wants/first-boot-((again|env)[.]service|retry[.]timer|user-data[.]path)", "type",
     "the vm layer enables its own units, which are in no package"),
    ("/etc/systemd/system/ssh[.]service[.]wants/vmbake-ssh-host-keys[.]service", "type",
     "the bake enables its unit for host keys, which is in no package"),
]


INFO = "/var/lib/dpkg/info"
STATE = ("/var/lib/dpkg/alternatives", "/var/lib/dpkg/triggers", "/etc/alternatives", "/etc/systemd/system",
         "/var/lib/systemd/deb-systemd-helper-enabled", "/var/lib/systemd/deb-systemd-helper-masked")
TAR = ("--numeric-owner", "--xattrs", "--xattrs-include=*")


def install(rootfs, root, debs, *options):
    """Unpacks a root file system, and lets its dpkg install packages, {file name: path}. No service is started: invoke-rc.d asks policy-rc.d, and
    deb-systemd-invoke sees no running systemd."""
    root.mkdir()
    must("tar", "-C", root, *TAR, "-xpf", rootfs)
    (root / "debs").mkdir()
    for name, deb in debs.items():
        shutil.copy(deb, root / "debs" / name)
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    if not (root / "dev/null").exists():
        must("mknod", "-m", "666", root / "dev/null", "c", "1", "3")
    # An own network namespace, mount namespace and process tree: what a script might start ends with it.
    must("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "chroot", root, "/usr/bin/env", "-i", f"PATH={PATH}", "DEBIAN_FRONTEND=noninteractive",
         "/bin/sh", "-c", f"dpkg --force-unsafe-io {' '.join(options)} -i /debs/*.deb")


def compare(rootfs, document, image, store, work):
    """Installs the packages of a manifest, keeping existing files where dpkg would prompt, and compares the result with the image baked of it."""
    entries = document["vmconfig"]["dependencies"]
    debs = {f"{name}.deb": store / "blobs" / one["digest"].replace(":", "/") for name, one in entries.items() if one["type"] == "deb"}
    root = work / "dpkg"
    install(rootfs, root, debs, "--force-confold")
    names = [must("dpkg-deb", "--field", deb, "Package").strip() for deb in debs.values()]
    # What an older version has and the new one lacks is compared too.
    must("tar", "-C", work, "-xf", rootfs, "./var/lib/dpkg/info")
    with Mount(image, work / "baked") as mount:
        differ = differences(names, str(root), mount.root, work / "var/lib/dpkg/info")
    shutil.rmtree(root)
    assert names and not differ, f"{len(differ)} differences\n" + "\n".join(differ[:100])


def differences(names, dpkg, image, before):
    """Lines about all that differs beyond ALLOWED, and about lines of ALLOWED that nothing needs."""
    def of_package(path):
        return re.split(r"[:.]", os.path.basename(path))[0] in names

    info = {path for path in below((dpkg, image), INFO) if of_package(path)}
    lists = [root + path for path in info if path.endswith(".list") for root in (dpkg, image) if os.path.exists(root + path)]
    lists += [path for path in before.glob("*.list") if of_package(path)]
    listed = {line for path in lists for line in pathlib.Path(path).read_text().split("\n") if line}
    assert len(listed) >= len(names), "nothing was compared"
    state = {"/var/lib/dpkg/status", "/var/lib/dpkg/diversions", "/var/lib/dpkg/statoverride"} | info
    for directory in STATE:
        state |= below((dpkg, image), directory)
    used, found = set(), []
    for path in sorted(state | listed):
        left, right = (properties(root, path, path in listed) for root in (dpkg, image))
        keys = ["type"] if left["type"] != right["type"] else sorted(left.keys() | right.keys())
        for key in keys:
            if left.get(key) == right.get(key):
                continue
            match = [line for line in ALLOWED if re.fullmatch(line[0], path) and key in line[1].split()]
            used.update(match[:1])
            if not match:
                found.append(f"{path}: {key}: dpkg {left.get(key)!r}, image {right.get(key)!r}")
                found += text_differences(dpkg, image, path) if key == "content" else []
    return found + [f"allowed without need: {line[0]} ({line[1]}): {line[2]}" for line in ALLOWED if line not in used]


def properties(root, path, times):
    here = inside(root, path)
    if not os.path.lexists(here):
        return {"type": "missing"}
    found = describe(here)
    if times and found["type"] in (stat.S_IFREG, stat.S_IFLNK):
        found["mtime"] = int(os.lstat(here).st_mtime)
    return found


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
    raise ValueError(f"{path}: too many links")


def below(roots, directory):
    """Every path below a directory, in any of the trees."""
    found = set()
    for root in roots:
        for path, directories, files in os.walk(root + directory):
            found.update(os.path.join(path, name)[len(root):] for name in directories + files)
    return found


def text_differences(dpkg, image, path):
    """How two texts differ."""
    texts = [pathlib.Path(inside(root, path)).read_bytes() for root in (dpkg, image)]
    if any(b"\0" in text or len(text) >= 8 << 20 for text in texts):
        return []
    lines = [text.decode("utf-8", "replace").splitlines() for text in texts]
    return ["    " + line for line, _ in zip(difflib.unified_diff(*lines, "dpkg", "image", n=1, lineterm=""), range(40))]
