"""Base images with various layouts, derived from the one of build.sh: a Lab in, a disk image out.

Each is a real one: partitions by sgdisk, file systems by mke2fs, resize2fs, mkswap and the kernel, containers by qemu-img. Only what
the kernel has to do needs root.
"""

import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from harness import disk
from harness.disk import MIB, SECTOR, Partition, call
from harness.paths import BASE_IMAGE

LINUX, SWAP = "0FC63DAF-8483-4772-8E79-3D69D8477DE4", "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F"
OTHER_GUID = "4B9E6F0C-57B8-4D53-8B7C-0A2C4A7F3E02"
BOOT_UUID, SWAP_UUID = "6b5d9a1e-20f3-4f6e-8d1b-7c9e0b3a5d02", "6b5d9a1e-20f3-4f6e-8d1b-7c9e0b3a5d03"
# What an interrupted journal has for this file, and the file system does not yet.
WITNESS, PLAYED = "/etc/debian_version", "13.played\n"


class Lab:
    """The base image taken apart, in a folder of the caller."""

    def __init__(self, base, folder):
        self.base, self.folder = base, folder
        self.raw = folder / "base.raw"
        call("qemu-img", "convert", "-O", "raw", base, self.raw)
        self.partitions = disk.partitions(self.raw)
        self.root = self.partitions[1]
        self.length = os.path.getsize(self.raw)
        self.baked = folder / "baked.raw"  # of the base as it is, once that was asked for
        self.disk_guid = re.search(r"GUID\): (\S+)", call("sgdisk", "-p", self.raw)).group(1)
        self.tree = folder / "tree"
        dump(self.raw, self.root, self.tree)

    def part(self, partition, name):
        """One partition of the base as a file that may be changed."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        return disk.take(self.raw, partition, path)

    def lay(self, path, root, length, more=(), esp=None):
        """The disk with another root partition, and more partitions: {Partition: file}. The partitions before the root stay."""
        parts = {one: self.part(one, f"part{number}") for number, one in self.partitions.items() if number != self.root.number}
        parts |= {one: esp for one in parts if esp and one.number == 15}
        return disk.lay(path, length, parts | dict(more) | dict([root]), self.raw, self.disk_guid)


class Variant(NamedTuple):
    """A variant of a base, and the expected result of a bake."""

    about: str
    make: Callable
    quick: bool = False  # made and judged within seconds
    root: str = ""  # what it needs root for
    like: bool = False  # the same disk in another container
    suffix: str = "raw"  # of the file
    behind: int = 0  # the partition that keeps the root from growing
    journal: bool = False  # has not been played: a bake refuses


def dump(raw, partition, path):
    """The files of an ext4 file system, without its device nodes, and owned by this user unless that is root."""
    path.mkdir()
    said = call("debugfs", "-R", f'rdump / "{path}"', f"{raw}?offset={partition.start}")
    faults = [line for line in said.splitlines()[1:] if "Operation not permitted" not in line]
    if faults:
        raise RuntimeError("\n".join(faults[:5]))


def change(volume, commands):
    """Has debugfs change a file system; it says something more than each command only about a fault."""
    said = call("debugfs", "-w", "-f", "-", volume, input="\n".join(commands) + "\n")
    faults = [line for line in said.splitlines()[1:] if line and not line.startswith(("debugfs: ", "Allocated inode: ", "Writing inode "))]
    if faults:
        raise RuntimeError("\n".join(faults[:5]))


def write(lab, volume, files):
    """Files of a file system get other content, {path: text}."""
    source = lab.folder / "content"
    for path, text in files.items():
        source.write_text(text)
        source.chmod(0o644)
        change(volume, [f"rm {path}", f"write {source} {path}"])


def resize(volume, length):
    """resize2fs, which demands a check before; the file is as long as its file system then."""
    call("e2fsck", "-fp", volume)
    call("resize2fs", volume, f"{length // 1024}K")
    os.truncate(volume, length)


def plain(lab, path):
    return lab.base


def baked(lab, path):
    return lab.baked


def container(*options):
    """The same disk, converted by qemu-img."""

    def make(lab, path):
        call("qemu-img", "convert", *options, lab.raw, path)
        return path

    return make


def grown(lab, path):
    """As growpart and resize2fs do it on a larger disk."""
    more = 2048 * MIB
    volume = lab.part(lab.root, "root")
    os.truncate(volume, lab.root.length + more)
    resize(volume, lab.root.length + more)
    root = lab.root._replace(sectors=lab.root.sectors + more // SECTOR)
    return lab.lay(path, (root, volume), lab.length + more)


def shrunk(lab, path):
    """As small as resize2fs makes it, and then with room for a bake, so that every block was moved that can be."""
    volume = lab.part(lab.root, "root")
    call("e2fsck", "-fp", volume)
    call("resize2fs", "-M", volume)
    blocks = int(re.search(r"Block count: +(\d+)", call("dumpe2fs", "-h", volume)).group(1))
    length = -(-(blocks * 4096) // MIB) * MIB + 384 * MIB
    os.truncate(volume, length)
    resize(volume, length)
    root = lab.root._replace(sectors=length // SECTOR)
    return lab.lay(path, (root, volume), root.start + length + MIB)


def swap(lab, path):
    """A root with a label, and swap behind it."""
    length = 256 * MIB
    volume = lab.part(lab.root, "root")
    resize(volume, lab.root.length - length)
    call("tune2fs", "-L", "cloud root", volume)
    write(lab, volume, {"/etc/fstab": (lab.tree / "etc/fstab").read_text() + f"UUID={SWAP_UUID} none swap sw 0 0\n"})
    root = lab.root._replace(sectors=lab.root.sectors - length // SECTOR)
    space = lab.folder / "swap"
    space.write_bytes(b"")
    os.truncate(space, length)
    call("mkswap", "-q", "-U", SWAP_UUID, space)
    behind = Partition(2, root.first + root.sectors, length // SECTOR, SWAP, OTHER_GUID, "swap")
    return lab.lay(path, (root, volume), lab.length, {behind: space})


def boot(lab, path):
    """/boot is a separate file system with blocks of 1 KiB; GRUB finds it from the BIOS and from UEFI. Both partitions are of the type
    Linux filesystem, as the Debian installer makes them."""
    length = 512 * MIB
    folder, volume = lab.folder / "boot", lab.folder / "boot.ext4"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(lab.tree / "boot", folder, symlinks=True)
    config = folder / "grub/grub.cfg"
    uuid = re.search(r"--fs-uuid --set=root (\S+)", config.read_text()).group(1)
    config.write_text(config.read_text().replace(uuid, BOOT_UUID).replace(" /boot/", " /"))
    volume.unlink(missing_ok=True)
    # In a separate namespace the files of this user are root's.
    call("unshare", "--map-root-user", "mke2fs", "-q", "-t", "ext4", "-b", "1024", "-U", BOOT_UUID, "-L", "boot", "-d", folder, volume, f"{length // 1024}K")
    root = lab.part(lab.root, "root")
    empty(root, lab.tree / "boot")
    line, rest = (lab.tree / "etc/fstab").read_text().split("\n", 1)
    write(lab, root, {"/etc/fstab": f"{line}\nUUID={BOOT_UUID} /boot ext4 defaults 0 2\n{rest}"})

    files, esp = _boot_files(lab, uuid), lab.partitions[15]
    first = Partition(2, lab.root.first, length // SECTOR, LINUX, OTHER_GUID, "boot")
    second = lab.root._replace(first=first.first + first.sectors, type=LINUX)
    lab.lay(path, (second, root), lab.length + length, {first: volume}, files / "esp.img")
    call("/usr/bin/python3", BASE_IMAGE / "skeleton.py", path, files, str(esp.first))
    return path


def empty(volume, folder):
    """Removes the contents of /boot of a file system, but not /boot."""
    commands = []
    for place, directories, files in os.walk(folder, topdown=False):
        inner = pathlib.Path("/boot") / pathlib.Path(place).relative_to(folder)
        commands += [f"rm {inner / name}" for name in files] + [f"rmdir {inner / name}" for name in directories]
    change(volume, commands)


def _boot_files(lab, uuid):
    """Files for skeleton.py: GRUB's core image for a separate /boot, by the base's grub-mkimage, and the ESP."""
    files = lab.folder / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    modules, libraries = lab.tree / "usr/lib/grub/i386-pc", lab.tree / "usr/lib/x86_64-linux-gnu"
    shutil.copy(modules / "boot.img", files)
    (files / "early.cfg").write_text(f"search.fs_uuid {BOOT_UUID} root\nset prefix=($root)/grub\n")
    call(libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, lab.tree / "usr/bin/grub-mkimage", "-d", modules, "-O", "i386-pc",
         "-o", files / "core.img", "-p", "/grub", "-c", files / "early.cfg",
         "biosdisk", "part_gpt", "ext2", "search", "search_fs_uuid", "normal", "configfile")
    esp = disk.take(lab.raw, lab.partitions[15], files / "esp.img")
    for name in ("::/EFI/debian/grub.cfg", "::/EFI/BOOT/grub.cfg"):
        config = call("mtype", "-i", esp, name).replace(uuid, BOOT_UUID).replace("/boot/grub", "/grub")
        (files / "grub.cfg").write_text(config)
        call("mcopy", "-o", "-i", esp, files / "grub.cfg", name)
    return files


def journal(lab, path):
    """A transaction in the journal that was never played: the content of one file."""
    volume = lab.part(lab.root, "root")
    block = call("debugfs", "-R", f"blocks {WITNESS}", volume).split("\n")[1].split()[0]
    content = lab.folder / "content"
    content.write_bytes(PLAYED.encode().ljust(4096, b"\0"))
    change(volume, [f"set_inode_field {WITNESS} size {len(PLAYED)}"])
    change(volume, ["journal_open", f"journal_write -b {block} {content}", "journal_close"])
    return lab.lay(path, (lab.root, volume), lab.length)


# The kernel's journal has what was written before `sync`, and a file that is deleted but open.
CUT = r"""
mount -o "loop,offset=$1" "$2" "$3"
printf '%s' "$6" >"$3$5.new" && mv "$3$5.new" "$3$5"
exec 9>"$3/var/tmp/open" && echo open >&9 && rm "$3/var/tmp/open"
sync
cp --sparse=always "$2" "$4"
exec 9>&-
umount "$3"
"""


def cut(lab, path):
    """A disk after a power cut: copied while the kernel has it mounted."""
    mount, copied = lab.folder / "mount", lab.folder / "mounted.raw"
    mount.mkdir(exist_ok=True)
    copied.unlink(missing_ok=True)
    disk.copy(lab.raw, 0, lab.length, copied)
    # In a separate namespace nothing stays mounted, however it ends.
    call("unshare", "--mount", "sh", "-ec", CUT, "sh", str(lab.root.start), copied, mount, path, WITNESS, PLAYED)
    copied.unlink()
    return path


def built(*options):
    """Another base by build.sh."""

    def make(lab, path):
        said = subprocess.run([BASE_IMAGE / "build.sh", *options], check=True, stdout=subprocess.PIPE, text=True).stdout
        return pathlib.Path(said.strip())

    return make


def packages(*names):
    """A base with more packages."""
    return built(*(word for name in names for word in ("--also", name)))


VARIANTS = {
    "plain": Variant("the base as build.sh makes it", plain),
    "raw": Variant("a raw disk", container("-O", "raw"), like=True),
    "1 KiB": Variant("qcow2 with clusters of 1 KiB", container("-O", "qcow2", "-o", "cluster_size=1k"), quick=True, like=True, suffix="qcow2"),
    "64 KiB": Variant("qcow2 with clusters of 64 KiB", container("-O", "qcow2", "-o", "cluster_size=64k"), like=True, suffix="qcow2"),
    "zlib": Variant("qcow2 of version 2", container("-c", "-O", "qcow2", "-o", "compat=0.10"), like=True, suffix="qcow2"),
    "zstd": Variant("qcow2 of version 3, compressed by zstd", container("-c", "-O", "qcow2", "-o", "compression_type=zstd"), like=True, suffix="qcow2"),
    "grown": Variant("grown by resize2fs", grown),
    "shrunk": Variant("shrunk by resize2fs", shrunk),
    "swap": Variant("a labelled root with a swap partition behind it", swap, quick=True, behind=2),
    "boot": Variant("a separate /boot with blocks of 1 KiB", boot),
    "baked": Variant("an image that was baked before", baked),
    "journal": Variant("an interrupted journal, by debugfs", journal, journal=True),
    "cut": Variant("an interrupted journal, by the kernel", cut, root="a mount", journal=True),
    "installed": Variant("packages of the manifest are installed", packages("containerd", "iptables", "runc")),
    "standard": Variant("all packages of priority important and standard, and iptables, in a file system that the kernel filled",
                        built("--also", "?priority(important)", "--also", "?priority(standard)", "--also", "iptables", "--kernel-filled"), root="a mount"),
    "official": Variant("packages, files, boot loaders and menu of Debian's own image", built("--official"), root="a mount"),
}
