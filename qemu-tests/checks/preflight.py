#!/usr/bin/python3
"""preflight.py VMBAKE IMAGE: what `vmbake preflight aws` says of a copy of a baked node that lacks one thing at a time.

IMAGE is raw. The copy is changed in place, its files by debugfs, judged, and changed back. Each fault must be noticed by its check and by no
other, and the node itself passes. What only another initramfs would break is in the tests of the builder. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from report import case, failures, skip

SECTOR = 512
WARNINGS = {"xen-blkfront", "console", "grow-root"}


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Node:
    def __init__(self, vmbake, image, work):
        self.vmbake, self.work, self.copy = vmbake, work, work / "node.raw"
        run("cp", "--sparse=always", image, self.copy)
        self.parts = {part["number"]: part for part in json.loads(run(vmbake, "inspect", image, "--json").stdout)["partitions"]}

    def root(self, *requests):
        """Has debugfs change the root file system."""
        for request in requests:
            # debugfs tells of errors on stderr, behind its version, and succeeds.
            said = run("debugfs", "-w", "-R", request, f"{self.copy}?offset={self.parts[1]['start']}").stderr.splitlines()[1:]
            if said:
                raise RuntimeError(f"{request}: {said}")

    def text(self, path):
        return run(self.vmbake, "cat", self.copy, path).stdout

    def write(self, path, text):
        file = self.work / "text"
        file.write_text(text)
        self.root(f"write {file} {path}")

    def bad(self):
        done = run(self.vmbake, "preflight", "aws", self.copy, "--json", check=False)
        found = json.loads(done.stdout)
        return {check["check"]: (check["status"], check["evidence"]) for check in found["checks"] if check["status"] != "ok"}, done.returncode, found

    def judged(self, check, what):
        found, code, _ = self.bad()
        status, expected = ("warning", 0) if check in WARNINGS else ("error", 1)
        case(f"{check}: {what}", list(found) == [check] and found[check][0] == status and code == expected, (found, code))

    def without(self, check, path):
        """Judges it without a file."""
        self.root(f"ln {path} /kept", f"unlink {path}")
        self.judged(check, f"without {path}")
        self.root(f"ln /kept {path}", "unlink /kept")

    def edited(self, check, path, old, new):
        """Judges it with another text in a file."""
        text = self.text(path)
        if old not in text:
            raise RuntimeError(f"{path} has no {old!r}")
        self.root(f"ln {path} /kept", f"unlink {path}")
        self.write(path, text.replace(old, new))
        self.judged(check, f"{new!r} for {old!r} in {path}")
        self.root(f"rm {path}", f"ln /kept {path}", "unlink /kept")

    def replaced(self, check, path, content):
        """Judges it with another file in place of one."""
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
        """Judges it with zeros at some places, (offset, length) each."""
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
    kernel = next(line.split()[-1] for line in run(node.vmbake, "ls", node.copy, "/boot").stdout.splitlines() if "/vmlinuz-" in line)
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


def main():
    vmbake, image = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if not shutil.which("debugfs"):
        return skip("debugfs is not installed")
    with tempfile.TemporaryDirectory() as work:
        node = Node(vmbake, image, pathlib.Path(work))
        found, code, said = node.bad()
        case("the baked node passes", not found and code == 0, found)
        case("it starts by UEFI and BIOS, on x86_64", (said["architecture"], said["boot_mode"]) == ("x86_64", "uefi-preferred"), said)
        faults(node)
        found, code, _ = node.bad()
        case("changed back, it passes again", not found and code == 0, found)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
