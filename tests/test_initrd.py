"""Systems of packages with a kernel: indexes of modules, initial RAM disks and links, compared with what depmod, mkinitramfs and linux-base make of the same
tree in a chroot."""

import pathlib
import tempfile

import pytest
from test_roots import EXTRACT, TARGET, Lab

from harness import initrd
from harness.run import must

pytestmark = pytest.mark.needs("root")

EPOCH = 1757635200


@pytest.fixture(scope="module")
def lab(vmbake):
    with tempfile.TemporaryDirectory(prefix="initrd.", dir="/var/tmp") as folder:
        lab = Lab(pathlib.Path(folder), vmbake)
        lab.kind("system", packages=["linux-image-cloud-amd64", "zstd", "systemd-sysv"])
        yield lab


@pytest.fixture(scope="module")
def archive(lab):
    return lab.made("system", "--base", "packages")


@pytest.fixture(scope="module")
def tree(lab, archive):
    return extracted(lab, archive, "tree")


def extracted(lab, archive, name):
    tree = lab.folder / name
    tree.mkdir()
    must(*EXTRACT, archive, "-C", tree)
    if not (tree / "dev/null").exists():
        must("mknod", "-m", "666", tree / "dev/null", "c", "1", "3")
    return tree


def kernel(tree):
    [image] = (tree / "boot").glob("vmlinuz-*")
    return image.name.removeprefix("vmlinuz-")


def made_in_chroot(tree):
    """The archives of what mkinitramfs makes."""
    must("chroot", tree, "env", f"SOURCE_DATE_EPOCH={EPOCH}", "mkinitramfs", "-o", "/var/tmp/initrd.img", kernel(tree))
    made = tree / "var/tmp/initrd.img"
    found = initrd.streams(made)
    made.unlink()
    return found


def assert_same(ours, theirs):
    assert [initrd.names(archive) for archive in ours] == [initrd.names(archive) for archive in theirs]
    assert ours == theirs


def test_initrd_is_that_of_mkinitramfs(tree):
    ours = initrd.streams(tree / f"boot/initrd.img-{kernel(tree)}")
    assert len(ours) == 2
    assert_same(ours, made_in_chroot(tree))


def test_modules_are_indexed_as_by_depmod(tree):
    modules = tree / f"usr/lib/modules/{kernel(tree)}"
    ours = {path.name: path.read_bytes() for path in modules.glob("modules.*")}
    must("chroot", tree, "depmod", kernel(tree))
    assert {path.name: path.read_bytes() for path in modules.glob("modules.*")} == ours
    assert not (modules / ".fresh-install").exists()


def test_links_lead_to_the_kernel(tree):
    links = {name: (tree / name).readlink() for name in ("vmlinuz", "vmlinuz.old", "initrd.img", "initrd.img.old")}
    assert links == {name: pathlib.Path(f"boot/{name.removesuffix('.old')}-{kernel(tree)}") for name in links}
    for name in links:
        (tree / name).unlink()
    must("chroot", tree, "linux-update-symlinks", "install", kernel(tree), f"/boot/vmlinuz-{kernel(tree)}")
    assert {name: (tree / name).readlink() for name in links} == links


# Files of a layer that lead to another initial RAM disk.
HOOK = b"""#!/bin/sh
[ "$1" = prereqs ] && exit
. /usr/share/initramfs-tools/hook-functions
copy_exec /usr/bin/zstd
manual_add_modules virtio_net
"""
CHANGES = {
    "options": {"etc/modprobe.d/own.conf": b"blacklist pcspkr\n", "etc/initramfs-tools/conf.d/own": b"COMPRESS=gzip\n"},
    "hook": {"etc/initramfs-tools/hooks/own": HOOK, "etc/initramfs-tools/modules": b"dummy numdummies=2\n"},
    "few": {"etc/initramfs-tools/conf.d/own": b"MODULES=netboot\n"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_files_lead_to_another_initrd(lab, archive, name):
    done = baked(lab, archive, name, CHANGES[name])
    assert done.returncode == 0, done.stderr
    assert "initial RAM disk" not in done.stderr
    found = extracted(lab, lab.folder / f"out/{name}.{TARGET}.tar", f"{name}.tree")
    ours = initrd.streams(found / f"boot/initrd.img-{kernel(found)}")
    assert_same(ours, made_in_chroot(found))


def test_what_needs_the_machine_leaves_the_initrd_of_the_base(lab, archive, tree):
    done = baked(lab, archive, "dependent", {"etc/initramfs-tools/conf.d/own": b"MODULES=dep\n"})
    assert done.returncode == 0, done.stderr
    assert f"/boot/initrd.img-{kernel(tree)} stays as in the base: /usr/sbin/mkinitramfs:" in done.stderr
    assert "the result depends on the running machine: /sys/devices/" in done.stderr
    found = extracted(lab, lab.folder / f"out/dependent.{TARGET}.tar", "dependent.tree")
    path = f"boot/initrd.img-{kernel(tree)}"
    assert (found / path).read_bytes() == (tree / path).read_bytes()


def baked(lab, archive, name, files):
    lab.kind(name)
    for path, content in files.items():
        file = lab.folder / f"layers/{name}/files/{path}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if content.startswith(b"#!") else 0o644)
    done = lab.update(name, "--base", archive)
    assert done.returncode == 0, done.stderr
    return lab.bake(name)


def test_dkms_is_refused(lab):
    lab.kind("compiled", packages=["dkms"])
    done = lab.update("compiled", "--base", "packages")
    assert done.returncode == 1
    assert "dkms compiles kernel modules on the machine, which is not supported in a bake" in done.stderr
