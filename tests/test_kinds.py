"""knd and knc, baked for amd64 and arm64: knc is compared with a node that dpkg, useradd, tar and systemctl made; then both are booted, by life.py.

The artifacts come from release sites on loopback, the packages from the Debian archive. Needs root, for chroot and loop mounts.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from harness import first_boot, trees
from harness.installed import site
from harness.mount import Mount
from harness.paths import BASE_IMAGE, HARNESS, ROOT
from harness.report import case
from harness.run import must
from harness.upstream import bake

pytestmark = [pytest.mark.boot, pytest.mark.needs("root")]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Allowed differences between an installed and a baked node: (paths, properties, reason).
ALLOWED = [
    ("/var/lib/container-images(/.*)?", "missing", "container images are baked; a node that is installed pulls them"),
    ("/opt/podplane/share/vmbake-origin.json", "missing", "the record of where every path came from"),
    ("/opt/podplane/share/firstboot.json", "missing", "the plan of the first boot is joined from the layers"),
    ("/etc/os-release", "type", "the image says its kind and version there"),
    ("/var/cache/ldconfig/aux-cache", "content missing mode", "ldconfig's own notes on inodes of this machine, made again by it"),
    ("/lost[+]found", "missing", "every ext4 file system has it"),
    ("/var/log/(dpkg|alternatives)[.]log", "missing content", "no log of making the image is in it"),
    ("/etc/(passwd|group|shadow|gshadow|subuid|subgid)-", "missing content", "copies that useradd makes before it changes them"),
    ("/etc/[.]pwd[.]lock", "missing", "a lock of useradd"),
    ("/var/lib/dpkg/(status|diversions|statoverride)-old", "missing content", "copies that dpkg makes before it changes them"),
]


@pytest.fixture(scope="module")
def baked_kinds(vmbake, base):
    """Both kinds for both architectures, in the folder of bake.py."""
    bake.bake(vmbake, {"amd64": base, "arm64": must(BASE_IMAGE / "foreign.sh", "arm64").strip()})


def inside(root, *command):
    """Runs a program of the tree; returns its exit code and all that it said."""
    environment = {"PATH": PATH, "LC_ALL": "C", "SYSTEMD_LOG_LEVEL": "warning"}
    result = subprocess.run(["unshare", "--mount", "--net", "chroot", root, *command], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.returncode, result.stdout


def tell(vmbake, *arguments):
    """Exit code and output of vmbake."""
    result = subprocess.run([vmbake, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.returncode, result.stdout


def test_kinds_again(vmbake, baked_kinds, base, work):
    """One file of a layer changes: only its consequences change."""
    layers = work / "layers"
    shutil.copytree(ROOT / "layers", layers)
    unit = "/usr/lib/systemd/system/hosts-refresh.service"
    with open(layers / f"podplane/files{unit}", "a") as file:
        file.write("# More.\n")
    code, said = bake.baking(vmbake, "knd", "amd64", base, "--out", work / "again", "--layers", layers, "--override", "layers/podplane")
    case("another file of a layer bakes", code == 0, said)
    pair = [bake.image("knd", "amd64"), work / "again" / bake.image("knd", "amd64").name]
    code, said = tell(vmbake, "diff", *pair)
    changed = re.findall(r"^(\w+) (\S+):", said, re.MULTILINE)
    expected = [("changed", "/opt/podplane/share/vmbake-origin.json"), ("changed", unit), ("layer", "podplane")]
    case("that file, the record and the layer are all that differs", code == 1 and changed[:3] == expected and len(changed) <= 4, said)
    code, said = tell(vmbake, "diff", pair[0], pair[0])
    case("an image does not differ from itself", code == 0, said)


def test_kinds_subset(vmbake, baked_kinds):
    """A knd is a knc without the control plane: knc alone is compared with an installed node."""
    share = "/opt/podplane/share"
    shared = {f"/etc/{name}" for name in ("passwd", "group", "shadow", "gshadow", "os-release")}
    shared |= {f"{share}/{name}.json" for name in ("firstboot", "vmbake-origin", "vmconfig-installed")}
    code, said = tell(vmbake, "diff", bake.image("knd", "amd64"), bake.image("knc", "amd64"), "--json")
    # The summary follows on standard error.
    paths = json.JSONDecoder().raw_decode(said)[0]["paths"]
    others = {path["path"] for path in paths if path["change"] != "added"}
    added = [path["path"] for path in paths if path["change"] == "added"]
    plane = re.compile(r"/opt/data|.*/(netsy|kubectl|kube-(apiserver|scheduler|controller-manager))([-./].*)?")
    case("knd is knc without the control plane", code == 1 and others == shared and added and all(map(plane.fullmatch, added)),
         f"{sorted(others ^ shared)}\n{[path for path in added if not plane.fullmatch(path)]}")


def test_kinds_explain(vmbake, baked_kinds):
    """The chain from a path to its signer."""
    image = bake.image("knc", "amd64")
    for path, expected in {
        "/usr/bin/kube-apiserver": r"artifact +kube-apiserver [\s\S]*proof +cosign signature by krel-staging@[\s\S]*matches the pinned digest",
        "/usr/local/bin/ctr": r"artifact +containerd [\s\S]*proof +sigstore bundle by https://github.com/containerd/",
        "/usr/bin/newuidmap": r"artifact +uidmap [\s\S]*proof +archive debian(-security)?, trixie(-security|-updates)? [\s\S]*package +uidmap ",
        "/opt/kubelet/etc/kubelet.yaml": r"layer +kubelet ",
        "/opt/kubelet/etc/kubeconfig": r"layer +kubelet ",
        "/opt/podplane/share/defaults/mutable.env": r"layer +settings ",
        "/opt/podplane/share/firstboot.json": r"layer +vm ",
        "/usr/bin/bash": r"base",
    }.items():
        code, said = tell(vmbake, "explain", image, path)
        case(f"explain {path}", code == 0 and re.search(expected, said), said)


def test_kinds_compared(baked_kinds, work, rootfs):
    """The baked tree compared with an installed one; then checks by the node's tools."""
    installed, target = work / "installed", bake.target("knc", "amd64")
    installed.mkdir()
    must("tar", "-C", installed, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xpf", rootfs)
    must(HARNESS / "install.sh", installed, site(work), ROOT / "layers", env={**os.environ, "SOURCE_DATE_EPOCH": bake.EPOCH})
    first_boot.write(ROOT / "layers", installed)
    with Mount(bake.image("knc", "amd64"), work / "mounted") as mount:
        different = trees.judge(str(installed), mount.root, ALLOWED, ("installed", "baked"))
        case(f"{target} is what dpkg, useradd, tar and systemctl make", different == 0, f"{different} differences")
        tools(target, str(installed), mount.writable())


def tools(target, installed, baked):
    for command in (["dpkg", "--audit"], ["dpkg", "--verify"]):
        code, said = inside(baked, *command)
        case(f"{target}: {' '.join(command)} has nothing to say", code == 0 and not said, said)
    code, said = inside(baked, "apt-get", "check")
    case(f"{target}: apt-get check", code == 0, said)
    for command in (["ldconfig", "-p"], ["systemctl", "list-unit-files", "--no-pager", "--no-legend"]):
        one, two = inside(installed, *command), inside(baked, *command)
        case(f"{target}: {' '.join(command)} as on an installed node", one == two and one[0] == 0, f"{one[1]}\n---\n{two[1]}")
    layers = [path.name for path in sorted(ROOT.glob("layers/*/files/**/systemd/system/*"))]
    units = [name for name in layers if os.path.exists(f"{baked}/usr/lib/systemd/system/{name}") or os.path.exists(f"{baked}/etc/systemd/system/{name}")]
    code, said = inside(baked, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units)
    case(f"{target}: systemd-analyze verify of {len(units)} units", code == 0 and not said and len(units) > 8, said)


def test_kinds_live(baked_kinds):
    assert subprocess.run([HARNESS / "life.py", *(bake.image(kind, "amd64") for kind in ("knc", "knd"))], check=False).returncode == 0
