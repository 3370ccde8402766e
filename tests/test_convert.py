"""A baked node in the formats of clouds, read by GNU tar and qemu-img."""

import json

import pytest

from harness import zlib_qcow2
from harness.report import case
from harness.run import must, run

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu-img", "tar", "gzip", "cmp")]


def convert(vmbake, image, form, out, *more):
    must(vmbake, "convert", image, "--format", form, "--out", out, "--force", *more)
    return out


def same(name, *command):
    done = run(*command)
    case(name, done.returncode == 0, done.stdout + done.stderr)


def gce(vmbake, raw, qcow2, work):
    one = convert(vmbake, raw, "gce", work / "one.tar.gz", "--jobs", "1")
    two = convert(vmbake, qcow2, "gce", work / "two.tar.gz", "--jobs", "2")
    same("gce: the same bytes from raw and qcow2, by one thread and two", "cmp", one, two)
    two.unlink()
    same("gce: gzip finds no fault", "gzip", "--test", one)
    listed = must("tar", "--list", "--verbose", "--file", one).split()
    case("gce: tar lists disk.raw alone", listed == ["-rw-r--r--", "0/0", str(raw.stat().st_size), "1970-01-01", "00:00", "disk.raw"], listed)
    must("tar", "--directory", work, "--extract", "--file", one)
    disk = work / "disk.raw"
    same("gce: tar unpacks the same disk", "cmp", disk, raw)
    used, had = disk.stat().st_blocks * 512, raw.stat().st_blocks * 512
    case("gce: its holes are holes again", used < had * 1.1, (used, had))
    disk.unlink()


def vhd(vmbake, raw, qcow2, work):
    one = convert(vmbake, raw, "vhd", work / "one.vhd", "--jobs", "1")
    two = convert(vmbake, qcow2, "vhd", work / "two.vhd", "--jobs", "2")
    same("vhd: the same bytes from raw and qcow2, by one thread and two", "cmp", one, two)
    two.unlink()
    same("vhd: qemu-img finds the same disk", "qemu-img", "compare", "-f", "vpc", "-F", "raw", one, raw)
    size = json.loads(must("qemu-img", "info", "-f", "vpc", "--output", "json", one))["virtual-size"]
    case("vhd: qemu-img finds the same size", size == raw.stat().st_size and size % (1 << 20) == 0, size)
    used, had = one.stat().st_blocks * 512, raw.stat().st_blocks * 512
    case("vhd: it is sparse", used < had * 1.1, (used, had))


def disks(vmbake, raw, qcow2, work):
    same("raw: of a qcow2, the same as the baked one", "cmp", convert(vmbake, qcow2, "raw", work / "one.raw"), raw)
    same("qcow2: of a raw disk, the same as the baked one", "cmp", convert(vmbake, raw, "qcow2", work / "one.qcow2"), qcow2)
    one = convert(vmbake, qcow2, "qcow2", work / "one.qcow2", "--compression", "zlib", "--jobs", "1")
    two = convert(vmbake, raw, "qcow2", work / "two.qcow2", "--compression", "zlib", "--jobs", "2")
    same("zlib: the same bytes from raw and qcow2, by one thread and two", "cmp", one, two)
    two.unlink()
    checked = run("qemu-img", "check", "-f", "qcow2", one)
    case("zlib: qemu-img finds no fault", checked.returncode == 0 and "No errors" in checked.stdout and "leak" not in checked.stdout, checked.stdout)
    same("zlib: qemu-img finds the same disk", "qemu-img", "compare", "-f", "qcow2", "-F", "raw", one, raw)
    zlib_qcow2.to_raw(one, work / "two.raw")
    same("zlib: so does a reader that knows nothing else", "cmp", work / "two.raw", raw)


@pytest.mark.parametrize("check", [gce, vhd, disks])
def test_convert(check, vmbake, baked, work):
    check(vmbake, baked, baked.with_suffix(".qcow2"), work)
