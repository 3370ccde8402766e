"""Raw disks with a GPT, as files: what is on one, its partitions as separate files, and a disk made of such files.

Holes stay holes: a disk of 3 GiB takes as much room as it has data. Needs sgdisk, and no root.
"""

import os
import re
import subprocess
from typing import NamedTuple

SECTOR = 512
MIB = 1 << 20
ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C"}
# Up to the partition entry of an MBR.
BOOT_CODE = 440


class Partition(NamedTuple):
    number: int
    first: int  # sector
    sectors: int
    type: str
    guid: str
    name: str = ""

    @property
    def start(self):
        return self.first * SECTOR

    @property
    def length(self):
        return self.sectors * SECTOR


def call(*command, **options):
    """Output of a program that must succeed."""
    result = subprocess.run(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {result.returncode}: {result.stdout.strip()}")
    return result.stdout


def partitions(disk):
    """The partitions of a disk, {number: Partition}."""
    numbers = re.findall(r"^ +(\d+) +\d", call("sgdisk", "-p", disk), re.MULTILINE)
    return {int(number): _partition(int(number), call("sgdisk", "-i", number, disk)) for number in numbers}


def _partition(number, said):
    def find(pattern):
        return re.search(pattern, said).group(1)

    first, last = (int(find(rf"{word} sector: (\d+)")) for word in ("First", "Last"))
    return Partition(number, first, last - first + 1, find(r"GUID code: (\S+)"), find(r"unique GUID: (\S+)"), find(r"name: '(.*)'"))


def copy(source, start, length, target, at=0):
    """Copies a range of one file into another, but for its holes: the target must have holes there."""
    with open(source, "rb") as old, open(target, "r+b" if os.path.exists(target) else "w+b") as new:
        position, end = start, start + length
        while position < end:
            try:
                position = os.lseek(old.fileno(), position, os.SEEK_DATA)
            except OSError:
                break
            hole = min(os.lseek(old.fileno(), position, os.SEEK_HOLE), end)
            while position < hole:
                position += os.copy_file_range(old.fileno(), new.fileno(), hole - position, position, at + position - start)
        if os.fstat(new.fileno()).st_size < at + length:
            new.truncate(at + length)


def take(disk, partition, path):
    """One partition as a separate file."""
    copy(disk, partition.start, partition.length, path)
    return path


def lay(path, length, parts, boot_code=None, guid=None):
    """Creates a disk from partitions and their contents, with the boot code of another disk in its first sector."""
    with open(path, "wb") as disk:
        disk.truncate(length)
    options = [f"--disk-guid={guid}"] if guid else []
    for one in parts:
        options += [f"--new={one.number}:{one.first}:{one.first + one.sectors - 1}", f"--typecode={one.number}:{one.type}",
                    f"--partition-guid={one.number}:{one.guid}", f"--change-name={one.number}:{one.name}"]
    call("sgdisk", "--set-alignment=1", *options, path)
    for partition, content in parts.items():
        copy(content, 0, min(partition.length, os.path.getsize(content)), path, partition.start)
    if boot_code:
        with open(boot_code, "rb") as old, open(path, "r+b") as new:
            new.write(old.read(BOOT_CODE))
    return path


def same(one, one_start, other, other_start, length):
    """Whether two ranges of files have the same bytes."""
    with open(one, "rb") as one_file, open(other, "rb") as other_file:
        one_file.seek(one_start)
        other_file.seek(other_start)
        for at in range(0, length, MIB):
            piece = min(MIB, length - at)
            if one_file.read(piece) != other_file.read(piece):
                return False
    return True
