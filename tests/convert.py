#!/usr/bin/env python3
"""convert.py VMBAKE IMAGE: a baked node in the forms of clouds, read by GNU tar and qemu-img.

IMAGE names IMAGE.raw and IMAGE.qcow2. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import zlib_qcow2
from harness.report import case, failures, skip


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def convert(vmbake, image, form, out, *more):
    run(vmbake, "convert", image, "--format", form, "--out", out, "--force", *more)
    return out


def same(name, *command):
    done = run(*command, check=False)
    case(name, done.returncode == 0, done.stdout + done.stderr)


def gce(vmbake, raw, qcow2, work):
    one = convert(vmbake, raw, "gce", work / "one.tar.gz", "--jobs", "1")
    two = convert(vmbake, qcow2, "gce", work / "two.tar.gz", "--jobs", "2")
    same("gce: the same bytes from raw and qcow2, by one thread and two", "cmp", one, two)
    two.unlink()
    same("gce: gzip finds no fault", "gzip", "--test", one)
    listed = run("tar", "--list", "--verbose", "--file", one).stdout.split()
    case("gce: tar lists disk.raw alone", listed == ["-rw-r--r--", "0/0", str(raw.stat().st_size), "1970-01-01", "00:00", "disk.raw"], listed)
    run("tar", "--directory", work, "--extract", "--file", one)
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
    size = json.loads(run("qemu-img", "info", "-f", "vpc", "--output", "json", one).stdout)["virtual-size"]
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
    checked = run("qemu-img", "check", "-f", "qcow2", one, check=False)
    case("zlib: qemu-img finds no fault", checked.returncode == 0 and "No errors" in checked.stdout and "leak" not in checked.stdout, checked.stdout)
    same("zlib: qemu-img finds the same disk", "qemu-img", "compare", "-f", "qcow2", "-F", "raw", one, raw)
    zlib_qcow2.to_raw(one, work / "two.raw")
    same("zlib: so does a reader that knows nothing else", "cmp", work / "two.raw", raw)


def main():
    vmbake, image = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for tool in ("qemu-img", "tar", "gzip", "cmp"):
        if not shutil.which(tool):
            return skip(f"{tool} is not installed")
    raw, qcow2 = (image.with_name(f"{image.name}.{form}") for form in ("raw", "qcow2"))
    for check in (gce, vhd, disks):
        with tempfile.TemporaryDirectory() as work:
            check(vmbake, raw, qcow2, pathlib.Path(work))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
