#!/usr/bin/env python3
"""disk.py FOLDER: small disks that `vmbake preflight aws` passes, for the stand-in for AWS: an ordinary user makes them by mke2fs, mkfs.vfat, mtools and sgdisk.

Each has 1 GiB, of which some dozen blocks of 512 KiB count: a BIOS boot partition, an EFI system partition, and a root of ext4 with a journal.
Nothing in them runs. `make(path, version, extra)` writes one; those with the same version and files are equal but for the times of inodes.
"""

import hashlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

MIB = 1 << 20
SIZE = 1024 * MIB
BLOCK = 524288
ROOT_UUID, ROOT_PARTUUID = "11111111-2222-4333-8444-555555555555", "AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE"
# Number of each partition: where it begins and how long it is, in MiB, and its type.
PARTS = {1: (6, 1017, "8304"), 14: (1, 1, "ef02"), 15: (2, 4, "ef00")}
TOOLS = ("mke2fs", "mkfs.vfat", "mmd", "mcopy", "sgdisk", "e2fsck", "fsck.vfat")
ENV = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC"}
# Time settings of these tools.
ENV |= {"E2FSPROGS_FAKE_TIME": "1700000000", "SOURCE_DATE_EPOCH": "1700000000"}
# A file of that many blocks whose contents each release may choose.
PAYLOAD = 4


def missing_tool():
    """The first tool that is not installed, or None."""
    return next((tool for tool in TOOLS if not shutil.which(tool, path=ENV["PATH"])), None)


def run(*command):
    done = subprocess.run([str(word) for word in command], env=ENV, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")


def noise(seed, length):
    return hashlib.shake_256(str(seed).encode()).digest(length)


def efi_program():
    """The beginning of a program for x86_64 that EFI starts."""
    program = bytearray(600)
    program[:2], program[0x3c], program[0x80:0x84], program[0x84:0x86] = b"MZ", 0x80, b"PE\0\0", struct.pack("<H", 0x8664)
    return bytes(program)


def cpio(names):
    """A cpio archive with empty files."""
    archive = b""
    for name in [*names, "TRAILER!!!"]:
        numbers = [1, 0o100644, 0, 0, 1, 0, 0, 0, 0, 0, 0, len(name) + 1, 0]
        archive += b"070701" + b"".join(b"%08X" % number for number in numbers) + name.encode() + b"\0"
        archive += bytes(-len(archive) % 4)
    return archive


def files(version):
    """Contents of the root file system."""
    arguments = f"root=PARTUUID={ROOT_PARTUUID.lower()} ro console=tty0 console=ttyS0,115200"
    elf = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    elf[18] = 62
    return {
        "bin/sh": bytes(elf),
        "boot/grub/grub.cfg": f"menuentry 'Linux' {{\n\tlinux /boot/vmlinuz-6.1 {arguments}\n\tinitrd /boot/initrd.img-6.1\n}}\n",
        "boot/initrd.img-6.1": cpio(["lib/nvme.ko", "lib/xen-blkfront.ko.zst"]),
        "boot/vmlinuz-6.1": efi_program(),
        "etc/cloud/cloud.cfg": "cloud_init_modules:\n - growpart\n",
        "etc/fstab": f"UUID={ROOT_UUID} / ext4 defaults 0 1\nLABEL=EFI /boot/efi vfat defaults 0 0\n",
        "etc/machine-id": "",
        "etc/os-release": f"IMAGE_ID=small\nIMAGE_VERSION={version}\n",
        "etc/systemd/network/50-all.network": "[Match]\nName=en*\n[Network]\nDHCP=yes\n",
        "lib/modules/6.1/kernel/ena/ena.ko.xz": "x",
        "lib/modules/6.1/modules.builtin": "kernel/fs/ext4/ext4.ko\nkernel/fs/fat/fat.ko\n",
        "usr/bin/cloud-init": "x",
        "usr/bin/growpart": "x",
        "usr/lib/systemd/system/cloud-init.target": "x",
    }


def make(path, version, extra=None):
    """Writes a disk. `extra` are files of the root in addition to those that make it pass: path -> bytes."""
    path = pathlib.Path(path)
    with tempfile.TemporaryDirectory(prefix="disk.") as work:
        work = pathlib.Path(work)
        for name, content in (files(version) | (extra or {})).items():
            file = work / "tree" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        root, esp = work / "root", work / "esp"
        run("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-N", "512", "-J", "size=4", "-m", "0", "-E", f"hash_seed={ROOT_UUID},root_owner=0:0",
            "-U", ROOT_UUID, "-d", work / "tree", root, f"{PARTS[1][1]}M")
        with open(esp, "wb") as file:
            file.truncate(PARTS[15][1] * MIB)
        run("mkfs.vfat", "--invariant", "-i", "12345678", "-n", "EFI", esp)
        run("mmd", "-i", esp, "::/EFI", "::/EFI/Boot")
        (work / "program").write_bytes(efi_program())
        run("mcopy", "-i", esp, work / "program", "::/EFI/Boot/BOOTX64.EFI")
        assemble(path, root, esp)


def assemble(path, root, esp):
    with open(path, "wb") as disk:
        disk.truncate(SIZE)
    options = []
    for number, (start, length, kind) in PARTS.items():
        options += [f"--new={number}:{start * 2048}:{(start + length) * 2048 - 1}", f"--typecode={number}:{kind}"]
        options.append(f"--partition-guid={number}:{ROOT_PARTUUID if number == 1 else f'{number:08}-BBBB-4CCC-8DDD-EEEEEEEEEEEE'}")
    run("sgdisk", "--disk-guid=99999999-8888-4777-8666-555555555555", *options, path)
    with open(path, "r+b") as disk:
        disk.write(b"boot")
        disk.seek(PARTS[14][0] * MIB)
        disk.write(b"core")
        for number, source in (1, root), (15, esp):
            with open(source, "rb") as file:
                for at in data(file.fileno()):
                    file.seek(at)
                    disk.seek(PARTS[number][0] * MIB + at)
                    disk.write(file.read(BLOCK))


def data(file):
    """Where the blocks of a file begin that are no holes."""
    at, end = 0, os.fstat(file).st_size
    while at < end:
        try:
            at = os.lseek(file, at, os.SEEK_DATA) // BLOCK * BLOCK
        except OSError:  # Nothing but holes.
            return
        yield at
        at += BLOCK


def payload(*seeds):
    """A file that each release has: a block of 512 KiB for each seed."""
    return {"var/payload": b"".join(noise(seed, BLOCK) for seed in seeds)}


if __name__ == "__main__":
    for number, seeds in enumerate([("a", "b", "c", "d"), ("a", "b", "x", "d")], 1):
        make(pathlib.Path(sys.argv[1], f"small-{number}.raw"), number, payload(*seeds))
