"""Indexes of images whose layers add kernel modules, compared with those that the depmod of the image writes."""

import pathlib
import tempfile

import pytest
from test_roots import CREATE, EXTRACT, Lab

from harness import kmod
from harness.run import must

pytestmark = pytest.mark.needs("root")

KERNEL = "6.12.90+deb13-amd64"
MODULES = f"usr/lib/modules/{KERNEL}"
BASE = [f"info vermagic={KERNEL} SMP preempt mod_unload modversions ", "crc base_call", "info alias=pci:v00001234d*sv*sd*bc*sc*i*"]
OWN = ["info vermagic=6.1.0-9-amd64 SMP mod_unload modversions ", "undefined base_call", "info alias=usb:v1234p*", "info softdep=pre: base"]
OTHER = [f"info vermagic={KERNEL} SMP mod_unload ", "crc other_call", "info alias=pci:v00009999d*sv*sd*bc*sc*i*"]


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
    modules = tree / MODULES
    for path in "kernel/drivers/base.ko", "updates/base.ko":
        (modules / path).parent.mkdir(parents=True)
        (modules / path).write_bytes(kmod.module(BASE))
    (modules / "modules.order").write_text("kernel/drivers/base.ko\n")
    (modules / "modules.builtin").write_text("kernel/fs/ext4.ko\n")
    (modules / "modules.builtin.modinfo").write_bytes(b"ext4.alias=fs-ext4\0")
    (tree / "usr/lib/depmod.d").mkdir(exist_ok=True)
    (tree / "usr/lib/depmod.d/base.conf").write_text("search built-in updates\n")
    must("chroot", tree, "depmod", KERNEL)
    return tree


@pytest.fixture(scope="module")
def archive(lab, tree):
    archive = lab.folder / "base.tar"
    must(*CREATE, "-C", tree, "-cf", archive, ".")
    return archive


def baked(lab, archive, name, files, **keys):
    """The result of baking a layer with files and keys on that system."""
    lab.kind(name, **keys)
    for path, content in files.items():
        file = lab.folder / f"layers/{name}/files/{path}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    done = lab.update(name, "--base", archive)
    assert done.returncode == 0, done.stderr
    return lab.bake(name)


# Files, other keys, and what the bake says.
CHANGES = {
    "added": ({f"{MODULES}/extra/own.ko": kmod.module(OWN)}, {}, f"/{MODULES}/extra/own.ko: built for kernel 6.1.0-9-amd64"),
    "replaced": ({f"{MODULES}/kernel/drivers/base.ko": kmod.module(OTHER)}, {}, ""),
    "removed": ({}, {"remove": [f"/{MODULES}/kernel/drivers/base.ko"]}, ""),
    "external": ({"etc/depmod.d/own.conf": b"external * /opt/mods\n", "opt/mods/own.ko": kmod.module(OWN)}, {}, ""),
    "overridden": ({"etc/depmod.d/own.conf": b"override base * updates\n"}, {}, ""),
    "hidden": ({}, {"symlinks": {"/etc/depmod.d/base.conf": "/dev/null"}}, ""),
    "linked": ({"opt/mods/own.ko": kmod.module(OWN)}, {"symlinks": {f"/{MODULES}/extra": "/opt/mods"}}, ""),
    "builtin": ({f"{MODULES}/modules.builtin": b"kernel/fs/ext4.ko\nkernel/fs/foo.ko\n"}, {}, ""),
    "elsewhere": ({"usr/lib/modules/6.99/extra/own.ko": kmod.module(OTHER)}, {}, "/usr/lib/modules/6.99: there is no kernel 6.99 in /boot"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_modules_are_indexed_as_by_depmod(lab, tree, archive, name):
    files, keys, said = CHANGES[name]
    done = baked(lab, archive, name, files, **keys)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    found = lab.folder / f"{name}.tree"
    found.mkdir()
    must(*EXTRACT, lab.folder / f"out/{name}.debian-13.amd64.tar", "-C", found)
    kernels = found / "usr/lib/modules"
    indexes = {file: file.read_bytes() for file in kernels.glob("*/modules.*")}
    base = {file: (tree / file.relative_to(found)).read_bytes() for file in indexes if (tree / file.relative_to(found)).exists()}
    assert base != indexes
    must("mknod", "-m", "666", found / "dev/null", "c", "1", "3")
    for kernel in kernels.iterdir():
        must("chroot", found, "depmod", kernel.name)
    assert {file: file.read_bytes() for file in kernels.glob("*/modules.*")} == indexes
    assert len(indexes) > 10


@pytest.mark.parametrize("name,content,said", [("broken", b"no module", "layer broken: cannot index its kernel modules"),
                                               ("foreign", kmod.module(["machine arm64"]), "it is a kernel module for arm64, but the image is for amd64")])
def test_files_that_are_no_modules_stop_the_bake(lab, archive, name, content, said):
    path = f"{MODULES}/extra/own.ko"
    done = baked(lab, archive, name, {path: content})
    assert done.returncode != 0
    assert said in done.stderr
    assert f"/{path}" in done.stderr
