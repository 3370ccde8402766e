"""Checks that every cloud image must pass, baked or not, in a booted machine in qemu (vm.py)."""

import json
import re

SECTOR = 512
# growpart leaves up to this much at the end of a disk.
TAIL = 1_100_000


def machine(vm):
    """The boot ended well, the disk is used whole, and the package manager agrees with the files."""
    failed = vm.failed()
    vm.case("no unit has failed", not failed, vm.systemctl("status", *failed) if failed else "")
    grown(vm)
    hostname(vm)
    initialised(vm)
    code, said = vm.run("ip", "-4", "-brief", "address", "show", "scope", "global")
    vm.case("address", code == 0 and "10.0.2.15/24" in said, said)
    code, said = vm.run("mountpoint", "/boot/efi")
    vm.case("ESP", code == 0, said)
    code, said = vm.run("dpkg", "--audit")
    vm.case("dpkg --audit", code == 0 and not said.strip(), said)
    code, said = vm.run("apt-get", "check")
    vm.case("apt-get check", code == 0, said)


def initialised(vm):
    """The files that `cloud-init status` reads: the command is slow under emulation."""
    result, status = (vm.get(f"/run/cloud-init/{name}.json") for name in ("result", "status"))
    if result is None or status is None:
        vm.case("cloud-init", False, vm.run("ls", "-l", "/run/cloud-init")[1])
        return
    stages = [stage for stage in json.loads(status)["v1"].values() if isinstance(stage, dict)]
    faults = [json.loads(result)["v1"]["errors"], *(stage.get(kind) for stage in stages for kind in ("errors", "recoverable_errors"))]
    ended = [stage["finished"] for stage in stages if stage.get("start")]
    vm.case("cloud-init", ended and all(ended) and not any(faults), faults)


def channel(vm):
    """The transport of all other checks: any bytes, of any length, and an endless script."""
    sent = bytes(range(256)) * 4096
    vm.put("/run/vmbake-test/sent", sent, 0o600)
    code, said = vm.bytes("cat; exit 7", sent)
    vm.case("shell: bytes", code == 7 and said == sent and vm.get("/run/vmbake-test/sent") == sent, f"exit status {code}, {len(said)} bytes")
    code, said = vm.shell("echo begun; sleep 1000", patience=2)
    vm.case("shell: a script that hangs", code == 124 and said == "begun\n", f"exit status {code}: {said}")


def grown(vm):
    """The root partition reaches the end of the disk, and its file system the end of the partition."""
    code, said = vm.shell("""set -e
        partition=/sys/class/block/$(basename "$(findmnt -no SOURCE /)")
        cat "$partition/../size" "$partition/start" "$partition/size"
        dumpe2fs -h "$(findmnt -no SOURCE /)" 2>/dev/null | sed -n 's/^Block \\(count\\|size\\): *//p'""")
    numbers = [int(word) for word in re.findall(r"^\d+$", said, re.MULTILINE)]
    if code != 0 or len(numbers) != 5:
        vm.case("grown", False, said)
        return
    disk, start, partition, blocks, size = numbers
    left, unused = (disk - start - partition) * SECTOR, partition * SECTOR - blocks * size
    larger = disk * SECTOR > vm.image_size()
    vm.case("grown", larger and left <= TAIL and 0 <= unused < 2 * size, f"{left} bytes after the partition, {unused} in it after the file system; {said}")


def hostname(vm):
    code, said = vm.shell("hostname; cat /etc/machine-id")
    found = re.fullmatch(r"(\S+)\n([0-9a-f]{32})\n", said)
    vm.case("host name and machine id", code == 0 and found and found.group(1) == vm.hostname, said)
