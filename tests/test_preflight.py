"""Results of `vmbake preflight aws` for copies of a baked node with one flaw each.

The copy is modified in place, its files by debugfs, checked, and restored. Each fault must be detected by its check only, and the node itself
passes. What only another initramfs would break is in the tests of the builder. The blocks that a snapshot takes are put together as EBS would, with noise
wherever data need not be kept, and e2fsck, fsck.vfat, sgdisk and `vmbake diff` check the disk.
"""

import base64
import hashlib
import json
import random

import pytest

from harness.report import case
from harness.run import must, run

SECTOR = 512
WARNINGS = {"xen-blkfront", "console", "grow-root"}


class Node:
    def __init__(self, vmbake, image, work):
        self.vmbake, self.work, self.copy = vmbake, work, work / "node.raw"
        must("cp", "--sparse=always", image, self.copy)
        self.parts = {part["number"]: part for part in json.loads(must(vmbake, "inspect", image, "--json"))["partitions"]}

    def root(self, *requests):
        """Has debugfs change the root file system."""
        for request in requests:
            # debugfs tells of errors on stderr, behind its version, and succeeds.
            said = run("debugfs", "-w", "-R", request, f"{self.copy}?offset={self.parts[1]['start']}").stderr.splitlines()[1:]
            if said:
                raise RuntimeError(f"{request}: {said}")

    def text(self, path):
        return must(self.vmbake, "cat", self.copy, path)

    def write(self, path, text):
        file = self.work / "text"
        file.write_text(text)
        self.root(f"write {file} {path}")

    def bad(self):
        done = run(self.vmbake, "preflight", "aws", self.copy, "--json")
        found = json.loads(done.stdout)
        return {check["check"]: (check["status"], check["evidence"]) for check in found["checks"] if check["status"] != "ok"}, done.returncode, found

    def judged(self, check, what):
        found, code, _ = self.bad()
        status, expected = ("warning", 0) if check in WARNINGS else ("error", 1)
        case(f"{check}: {what}", list(found) == [check] and found[check][0] == status and code == expected, (found, code))

    def without(self, check, path):
        """Checks it without a file."""
        self.root(f"ln {path} /kept", f"unlink {path}")
        self.judged(check, f"without {path}")
        self.root(f"ln /kept {path}", "unlink /kept")

    def edited(self, check, path, old, new):
        """Checks it with another text in a file."""
        text = self.text(path)
        if old not in text:
            raise RuntimeError(f"{path} has no {old!r}")
        self.root(f"ln {path} /kept", f"unlink {path}")
        self.write(path, text.replace(old, new))
        self.judged(check, f"{new!r} for {old!r} in {path}")
        self.root(f"rm {path}", f"ln /kept {path}", "unlink /kept")

    def replaced(self, check, path, content):
        """Checks it with a file replaced by another."""
        file = self.work / "file"
        file.write_bytes(content)
        self.root(f"ln {path} /kept", f"unlink {path}", f"write {file} {path}")
        self.judged(check, f"with another {path}")
        self.root(f"rm {path}", f"ln /kept {path}", "unlink /kept")

    def added(self, check, path, text):
        self.write(path, text)
        self.judged(check, f"with {path}")
        self.root(f"rm {path}")

    def zeroed(self, check, what, *places):
        """Checks it with zeros at some ranges, (offset, length) each."""
        with open(self.copy, "r+b") as disk:
            kept = []
            for at, length in places:
                disk.seek(at)
                kept.append(disk.read(length))
                disk.seek(at)
                disk.write(bytes(length))
            disk.flush()
            self.judged(check, what)
            for (at, _), content in zip(places, kept):
                disk.seek(at)
                disk.write(content)


def faults(node):
    size = node.copy.stat().st_size
    node.zeroed("partition-table", "the first header is gone", (SECTOR, SECTOR))
    node.zeroed("partition-table", "the second header is gone", (size - SECTOR, SECTOR))
    node.zeroed("boot-mode", "nothing starts it", (node.parts[14]["start"], SECTOR), (node.parts[15]["start"], 1 << 20))
    kernel = next(line.split()[-1] for line in must(node.vmbake, "ls", node.copy, "/boot").splitlines() if "/vmlinuz-" in line)
    modules = f"/usr/lib/modules/{kernel.split('vmlinuz-')[1]}"
    node.edited("nvme", f"{modules}/modules.builtin", "nvme/host/nvme.ko", "nvme/host/nvme-other.ko")
    node.edited("ext4", f"{modules}/modules.builtin", "ext4/ext4.ko", "ext4/other.ko")
    node.without("ena", f"{modules}/kernel/drivers/net/ethernet/amazon/ena/ena.ko.xz")
    node.edited("fstab", "/etc/fstab", "PARTUUID=4b9e6f0c-57b8-4d53-8b7c-0a2c4a7f3e15", "/dev/vda15")
    node.edited("root-argument", "/boot/grub/grub.cfg", "root=PARTUUID=4b9e6f0c-57b8-4d53-8b7c-0a2c4a7f3e11", "root=/dev/vda1")
    node.edited("console", "/boot/grub/grub.cfg", "console=ttyS0,115200", "console=ttyS1")
    node.without("cloud-init", "/usr/bin/cloud-init")
    node.edited("datasource", "/etc/cloud/cloud.cfg.d/90_datasources.cfg", "Ec2", "Azure")
    node.added("network", "/etc/systemd/network/10-one.network", "[Match]\nName=eth0\n[Network]\nDHCP=yes\n")
    node.replaced("architecture", "/usr/lib/systemd/systemd", b"\x7fELF\x02\x01\x01" + bytes(11) + bytes([183]) + bytes(100))
    node.added("lint", "/etc/ssh/ssh_host_ed25519_key", "secret\n")


class Snapshot:
    """A volume as EBS creates it from the blocks listed by `vmbake preflight aws`; all other blocks are noise."""

    def __init__(self, vmbake, image, path, parent=None):
        options = ["--parent", parent.image] if parent else ["--snapshot"]
        self.image, self.path = image, path
        self.said = json.loads(must(vmbake, "preflight", "aws", image, "--json", *options))["snapshot"]
        length, blocks = self.said["block_size"], self.said["blocks"]
        if parent:
            must("cp", "--sparse=always", parent.path, path)
        else:
            noise, size = random.Random(1).randbytes(length), self.said["volume_size"] << 30
            with open(path, "wb") as disk:
                for _ in range(size // length):
                    disk.write(noise)
        self.wrong, linear = [], hashlib.sha256()
        with open(image, "rb") as source, open(path, "r+b") as disk:
            for block in blocks:
                source.seek(block["index"] * length)
                disk.seek(block["index"] * length)
                content, checksum = source.read(length), base64.b64decode(block["checksum"])
                linear.update(checksum)
                if hashlib.sha256(content).digest() == checksum:
                    disk.write(content)
                elif checksum == hashlib.sha256(bytes(length)).digest():
                    # It was in use in the parent, and is not any more.
                    disk.write(bytes(length))
                else:
                    self.wrong.append(block)
        self.sums = linear.digest() == base64.b64decode(self.said["checksum"]) and self.said["changed_blocks_count"] == len(blocks)

    def judged(self, what, vmbake, parts, work):
        case(f"{what}: every checksum is that of its block", not self.wrong and self.sums, self.wrong)
        checked = run("e2fsck", "-fn", f"{self.path}?offset={parts[1]['start']}")
        case(f"{what}: e2fsck is content", checked.returncode == 0, checked.stdout)
        esp = work / "esp"
        with open(self.path, "rb") as disk:
            disk.seek(parts[15]["start"])
            esp.write_bytes(disk.read(parts[15]["size"]))
        checked = run("fsck.vfat", "-n", esp)
        case(f"{what}: fsck.vfat is content", checked.returncode == 0, checked.stdout)
        checked = run("sgdisk", "--verify", self.path)
        case(f"{what}: sgdisk is content", "No problems found" in checked.stdout, checked.stdout)
        checked = run(vmbake, "diff", "--times", self.image, self.path)
        case(f"{what}: its files are those of the image", checked.returncode == 0, checked.stdout)


def snapshots(node):
    """A node, and as its child the same with a file more and one less."""
    work = node.work
    first = Snapshot(node.vmbake, node.copy, work / "first.raw")
    first.judged("a snapshot", node.vmbake, node.parts, work)
    left_out = sum(last - start + 1 for start, last in first.said["left_out"])
    total = first.said["volume_size"] << 11
    case("and most of what is free is left out", first.said["used_blocks"] + left_out == total and left_out > total // 2, first.said["left_out"])
    changed = work / "changed.raw"
    must("cp", "--sparse=always", node.copy, changed)
    (work / "large").write_bytes(random.Random(2).randbytes(20 << 20))
    for request in (f"write {work / 'large'} /large", "rm /usr/bin/perl"):
        said = run("debugfs", "-w", "-R", request, f"{changed}?offset={node.parts[1]['start']}").stderr.splitlines()[1:]
        if said:
            raise RuntimeError(f"{request}: {said}")
    second = Snapshot(node.vmbake, changed, work / "second.raw", parent=first)
    second.judged("its child", node.vmbake, node.parts, work)
    case("which is sent what changed", 40 <= len(second.said["blocks"]) <= 60, len(second.said["blocks"]))


@pytest.mark.needs("debugfs", "e2fsck", "fsck.vfat", "sgdisk")
def test_preflight(vmbake, baked, work):
    node = Node(vmbake, baked, work)
    found, code, said = node.bad()
    case("the baked node passes", not found and code == 0, found)
    case("it starts by UEFI and BIOS, on x86_64", (said["architecture"], said["boot_mode"]) == ("x86_64", "uefi-preferred"), said)
    faults(node)
    found, code, _ = node.bad()
    case("changed back, it passes again", not found and code == 0, found)
    snapshots(node)
