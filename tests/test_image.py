"""The baked image as seen by other tools, which must not report errors."""

import re

import pytest

from harness.run import must

SECTOR = 512


@pytest.fixture
def qcow2(baked):
    return baked.with_suffix(".qcow2")


def partition(raw, number, out):
    """A sparse copy of one partition."""
    said = must("sgdisk", "-i", number, raw)
    first, last = (int(re.search(rf"^{which} sector: (\d+)", said, re.MULTILINE)[1]) for which in ("First", "Last"))
    with raw.open("rb") as source, out.open("wb") as target:
        source.seek(first * SECTOR)
        left = (last - first + 1) * SECTOR
        while left > 0:
            block = source.read(min(left, 1 << 20))
            if block.strip(b"\0"):
                target.write(block)
            else:
                target.seek(len(block), 1)
            left -= len(block)
        target.truncate((last - first + 1) * SECTOR)
    return out


def test_digests(release):
    must("sha256sum", "--quiet", "--check", "SHA256SUMS", cwd=release)


def test_fsverity_digests(release):
    listed = (release / "FSVERITYSUMS").read_text()
    names = [line.split(" ", 1)[1] for line in listed.splitlines()]
    assert must("fsverity", "digest", *names, cwd=release) == listed


def test_qcow2_has_no_fault(qcow2):
    must("qemu-img", "check", "-q", qcow2)


def test_raw_and_qcow2_are_the_same_disk(baked, qcow2):
    must("qemu-img", "compare", "-q", baked, qcow2)


def test_partition_table(baked):
    assert re.search("^No problems found", must("sgdisk", "-v", baked), re.MULTILINE)
    assert re.findall(r"^ +(\d+) ", must("sgdisk", "-p", baked), re.MULTILINE) == ["1", "14", "15"]


def test_efi_partition(baked, work):
    must("fsck.vfat", "-n", partition(baked, 15, work / "esp"))


def test_root_file_system_as_baked_and_grown(baked, work):
    root = partition(baked, 1, work / "root")
    must("e2fsck", "-fn", root)
    with root.open("r+b") as file:
        file.truncate(2 * root.stat().st_size)
    must("resize2fs", root)
    must("e2fsck", "-fn", root)
