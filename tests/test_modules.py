"""Indexes of images whose layers add kernel modules, compared with those that the depmod of the image writes."""

import pathlib
import shutil
import tempfile

import pytest
from test_roots import CREATE, EXTRACT, Lab

from harness import kmod
from harness.run import must

pytestmark = pytest.mark.needs("root")

KERNEL = "6.12.90+deb13-amd64"
BASE = [f"info vermagic={KERNEL} SMP preempt mod_unload modversions ", "crc base_call", "info alias=pci:v00001234d*sv*sd*bc*sc*i*"]
OWN = ["info vermagic=6.1.0-9-amd64 SMP mod_unload modversions ", "undefined base_call", "info alias=usb:v1234p*", "info softdep=pre: base"]


@pytest.fixture(scope="module")
def lab(vmbake):
    with tempfile.TemporaryDirectory(prefix="modules.", dir="/var/tmp") as folder:
        lab = Lab(pathlib.Path(folder), vmbake)
        lab.kind("system", packages=["kmod"])
        yield lab


@pytest.fixture(scope="module")
def tree(lab):
    """A system with a kernel."""
    tree = lab.folder / "tree"
    tree.mkdir()
    must(*EXTRACT, lab.made("system", "--base", "packages"), "-C", tree)
    modules = tree / f"usr/lib/modules/{KERNEL}"
    (modules / "kernel/drivers").mkdir(parents=True)
    (modules / "kernel/drivers/base.ko").write_bytes(kmod.module(BASE))
    (modules / "modules.order").write_text("kernel/drivers/base.ko\n")
    (modules / "modules.builtin").write_text("kernel/fs/ext4.ko\n")
    (modules / "modules.builtin.modinfo").write_bytes(b"ext4.alias=fs-ext4\0")
    must("chroot", tree, "depmod", KERNEL)
    return tree


def kind(lab, tree, name, path, content):
    """Bakes a kind whose layer adds a module to that system."""
    archive = lab.folder / "base.tar"
    if not archive.exists():
        must(*CREATE, "-C", tree, "-cf", archive, ".")
    lab.kind(name)
    file = lab.folder / f"layers/{name}/files/{path}"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    done = lab.update(name, "--base", archive)
    assert done.returncode == 0, done.stderr
    return lab.bake(name)


def test_modules_are_indexed_as_by_depmod(lab, tree):
    path = f"usr/lib/modules/{KERNEL}/extra/own.ko"
    done = kind(lab, tree, "own", path, kmod.module(OWN))
    assert done.returncode == 0, done.stderr
    assert f"/{path}: built for kernel 6.1.0-9-amd64" in done.stderr
    found, expected = lab.folder / "found", lab.folder / "expected"
    found.mkdir()
    must(*EXTRACT, lab.folder / "out/own.debian-13.amd64.tar", "-C", found)
    shutil.copytree(tree, expected, symlinks=True)
    (expected / path).parent.mkdir()
    (expected / path).write_bytes(kmod.module(OWN))
    must("chroot", expected, "depmod", KERNEL)
    names = sorted(file.name for file in (expected / path).parent.parent.glob("modules.*"))
    assert len(names) > 10
    for name in names:
        assert (found / f"usr/lib/modules/{KERNEL}/{name}").read_bytes() == (expected / f"usr/lib/modules/{KERNEL}/{name}").read_bytes(), name
    ask = ["modprobe", "--set-version", KERNEL, "--show-depends", "usb:v1234p5"]
    shown = must("chroot", found, *ask)
    assert shown == must("chroot", expected, *ask)
    assert f"/{path.removeprefix('usr/')}" in shown


def test_invalid_modules_stop_the_bake(lab, tree):
    done = kind(lab, tree, "broken", f"usr/lib/modules/{KERNEL}/extra/own.ko.xz", b"no module")
    assert done.returncode != 0
    assert "layer broken: cannot index its kernel modules" in done.stderr
    assert f"/usr/lib/modules/{KERNEL}/extra/own.ko.xz" in done.stderr
