"""Disks that a bake creates for a root file system without one: e2fsck, fsck.vfat, sfdisk, sgdisk and GRUB's tools read them, and machines
with BIOS and UEFI start from them."""

import json
import pathlib
import tarfile
import tempfile

import pytest
from test_roots import TARGET, Lab

from harness.run import must, run

SECTOR = 512


@pytest.fixture(scope="module")
def lab(vmbake):
    with tempfile.TemporaryDirectory(prefix="disks.", dir="/var/tmp") as folder:
        lab = Lab(pathlib.Path(folder), vmbake)
        # The archive of the base has the fstab of another disk.
        lab.kind("foreign")
        lab.kind("machine", remove=["/etc/fstab"], kernel_arguments=["vmbake.test=1"])
        lab.kind("system")
        yield lab


@pytest.fixture(scope="module")
def disk(lab, rootfs):
    """The raw image of a new disk, and the archive of its root file system."""
    assert (done := lab.update("machine", "--base", rootfs)).returncode == 0, done.stderr
    done = lab.bake("machine", "--format", "raw,qcow2,tar", "--size", "2G")
    assert done.returncode == 0, done.stderr
    return lab.folder / f"out/machine.{TARGET}.raw"


@pytest.fixture(scope="module")
def partitions(disk):
    """By number."""
    table = json.loads(must("sfdisk", "--json", disk))["partitiontable"]
    return {int(one["node"].removeprefix(str(disk))): one for one in table["partitions"]}


def part(disk, partition, path):
    must("dd", f"if={disk}", f"of={path}", f"bs={SECTOR}", f"skip={partition['start']}", f"count={partition['size']}", "conv=sparse")
    return path


def member(disk, path):
    with tarfile.open(disk.with_suffix(".tar")) as archive:
        return archive.extractfile(path.removeprefix("/")).read().decode()


def test_disk_is_that_of_a_cloud_image(disk, partitions, work):
    assert "No errors detected" in must("sfdisk", "--verify", disk)
    assert "No problems found" in must("sgdisk", "--verify", disk)
    layout = {number: (one["start"], one["size"]) for number, one in partitions.items()}
    assert layout == {14: (2048, 6144), 15: (8192, 253952), 1: (262144, 3930112)}
    must("fsck.vfat", "-n", part(disk, partitions[15], work / "esp"))
    root = part(disk, partitions[1], work / "root")
    must("e2fsck", "-fn", root)
    assert must("blkid", "-p", "-s", "UUID", "-o", "value", root).strip() in must("mtype", "-i", work / "esp", "::EFI/debian/grub.cfg")
    must("qemu-img", "compare", disk, disk.with_suffix(".qcow2"))


def test_files_of_the_root_name_its_partitions(disk, partitions, work):
    fstab = [line.split()[:2] for line in member(disk, "/etc/fstab").splitlines()]
    assert fstab == [[f"PARTUUID={partitions[number]['uuid'].lower()}", point] for number, point in ((1, "/"), (15, "/boot/efi"))]
    menu = work / "grub.cfg"
    menu.write_text(member(disk, "/boot/grub/grub.cfg"))
    must("grub-script-check", menu)
    kernels = [line for line in menu.read_text().splitlines() if line.split()[:1] == ["linux"]]
    assert kernels
    for line in kernels:
        assert f" root=PARTUUID={partitions[1]['uuid'].lower()} ro " in line
        assert line.split()[-1] == "vmbake.test=1"
    must("grub-editenv", work / "empty", "create")
    assert member(disk, "/boot/grub/grubenv") == (work / "empty").read_text()


def test_same_inputs_same_disk(lab, disk):
    before = must("sha256sum", disk)
    done = lab.bake("machine", "--format", "raw", "--size", "2G", "--no-cache", "--force")
    assert done.returncode == 0, done.stderr
    assert must("sha256sum", disk) == before


def test_systems_that_cannot_start_are_refused(lab, rootfs):
    assert lab.update("foreign", "--base", rootfs).returncode == 0
    done = lab.bake("foreign", "--format", "qcow2")
    assert done.returncode == 1 and "/etc/fstab mounts PARTUUID=" in done.stderr, done.stderr
    assert lab.update("system", "--base", "packages").returncode == 0
    done = lab.bake("system", "--format", "raw")
    assert done.returncode == 1 and "the image has no kernel" in done.stderr, done.stderr
    done = lab.bake("system", "--format", "tar", "--size", "2G")
    assert done.returncode == 1 and "--size needs --format raw or qcow2" in done.stderr, done.stderr


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_machine_starts(vmbake, disk, work, firmware):
    checks = "no-failed-units,file=/boot/efi/EFI/debian/grub.cfg,run=grep vmbake.test=1 /proc/cmdline"
    done = run(vmbake, "boot", disk, "--firmware", firmware, "--size", "+1G", "--network", "isolated", "--check", checks, "--timeout", "800", "--log", work / "console")
    assert done.returncode == 0, done.stdout + done.stderr
