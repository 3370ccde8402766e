#!/usr/bin/env python3
"""powercut.py [--points N] [--seed N] IMAGE: cuts the power during a first boot, at random points; the next boot must recover.

A first boot is stopped when cloud-init has written the data of the machine, and its state kept: memory and disk. It goes on from there
undisturbed to the end, which is what every other must come to; then, for each point, from there to the point, where qemu is killed, and
then boots again from its disk. Half of the points are anywhere from the data to the end of first-boot-env.service, half within that service.

What is lost is what the machine had not written to its disk. The disk keeps what it was given, like one without a cache. The root
file system has to be right after its journal was taken over, and again at the end. Prints `ok: NAME` or `FAIL: NAME`.
"""

import argparse
import json
import pathlib
import random
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from steps import ENVIRONMENT, left

from harness import scenarios
from harness.cluster_node import WRITTEN
from harness.node import Node
from harness.report import case, failures
from harness.vm import PATIENCE, call

# Differences between first boots: keys of hosts, copies that passwd's tools keep, records and comments with times. And what
# cloud-init's own user has: useradd syncs no file, and is not called again for a user who is there.
VOLATILE = re.compile(r"/etc/ssh/ssh_host_.*|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-|/etc/\.(pwd\.lock|updated)|/var/lib/vmbake/.*"
                      r"|/etc/sudoers\.d/90-cloud-init-users|/home/debian(/.*)?|/etc/(subuid|subgid)\+?")
# Programs are large and not modified.
TREE = rf"""cd / && find {' '.join(WRITTEN)} -printf '%p\t%y %m %u:%g %l\n'
find {' '.join(WRITTEN)} -type f -size -1024k -print0 | xargs -0 sha256sum | sed -E 's/^([0-9a-f]+)  (.*)$/\2\t\1/'"""


class Monitor:
    """qemu's own: it stops a machine, and keeps its state."""

    def __init__(self, path):
        deadline = time.monotonic() + PATIENCE
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        while True:
            try:
                self.socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)  # qemu does not report when it listens
        self.lines = self.socket.makefile()
        self.lines.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            answer = json.loads(self.lines.readline())
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def until(self, command, field, value):
        while (found := self.ask(command).get(field)) != value:
            if found in ("failed", "cancelled"):
                raise RuntimeError(f"{command}: {found}")
            time.sleep(0.02)  # qemu has no event for each of these


class Cut:
    """A node whose first boot can be gone on with from one moment, again and again."""

    def __init__(self, image, folder):
        self.name, folder = "first", pathlib.Path(folder)
        self.monitor, self.state, self.start = folder / "monitor", folder / "state", folder / "start.qcow2"
        self.node = Node(image, folder, lambda name, ok, said="": case(f"{self.name}: {name.split(': ', 1)[1]}", ok, said), firmware="direct")
        self.plain = list(self.node.more)

    def boot(self, *more, **options):
        self.node.more = [*self.plain, "-qmp", f"unix:{self.monitor},server=on,wait=off", *more]
        self.node.boot(**options)

    def keep(self):
        """Boots to the moment when the machine has its data; keeps disk and memory, and returns the machine's time then."""
        self.boot()
        code, said = self.node.shell(f"until [ -s {scenarios.USER_DATA} ]; do sleep 0.05; done; cut -d' ' -f1 /proc/uptime", patience=PATIENCE)
        monitor = Monitor(self.monitor)
        monitor.ask("stop")
        case("a first boot comes to its data", code == 0, said)
        monitor.ask("migrate", uri=f"exec:cat >{self.state}")
        monitor.until("query-migrate", "status", "completed")
        self.node.kill()
        shutil.move(self.node.disk, self.start)
        return float(said)

    def resume(self):
        """The machine of that moment goes on."""
        shutil.copy(self.start, self.node.disk)
        self.monitor.unlink(missing_ok=True)
        self.boot("-incoming", f"exec:cat {self.state}", shell=False)
        # The agent of the machine has said long ago that it is ready.
        self.node.shell_.server.settimeout(PATIENCE)
        self.node.shell_.stream, _ = self.node.shell_.server.accept()
        monitor = Monitor(self.monitor)
        # It is as it was when its state was kept: stopped.
        monitor.until("query-status", "status", "paused")
        monitor.ask("cont")

    def ended(self):
        """The end of a boot: the tree that it left."""
        ended, said = self.node.booted()
        case(f"{self.name}: boots", ended, said)
        scenarios.first_boot(self.node)
        code, said = self.node.shell(TREE)
        case(f"{self.name}: has a tree", code == 0, said)
        tree = {}
        for line in said.splitlines():
            path, _, what = line.partition("\t")
            tree.setdefault(path, []).append(what)
        return {path: what for path, what in tree.items() if not VOLATILE.fullmatch(path)}

    def undisturbed(self, uptime):
        """The first boot as it should be: its tree, and seconds from the moment to the start and to the end of the first-boot program."""
        self.resume()
        tree = self.ended()
        said = self.node.systemctl("show", "-p", "InactiveExitTimestampMonotonic", "-p", "ActiveEnterTimestampMonotonic", scenarios.FIRST)
        start, end = (int(re.search(rf"^{name}TimestampMonotonic=(\d+)$", said, re.MULTILINE).group(1)) / 1e6 - uptime
                      for name in ("InactiveExit", "ActiveEnter"))
        self.node.poweroff()
        return tree, start, end

    def cut(self, seconds, tree):
        """Cuts the power so many seconds after the moment, and boots again."""
        self.resume()
        time.sleep(seconds)  # the subject
        self.node.kill()
        self.check("after the cut")
        self.boot()
        there = set(self.node.shell(f"find {' '.join(WRITTEN)}")[1].splitlines())
        new = [path for path in tree if path.startswith(("/opt/env/", "/opt/podplane/etc/", scenarios.MARKER))]
        print(f"    {self.name}: {len(there & set(new))} of {len(new)} settings were there", flush=True)
        found = self.ended()
        case(f"{self.name}: comes to the same end", found == tree, {path: (found.get(path), tree.get(path)) for path in sorted(found.keys() | tree.keys())
                                                                    if found.get(path) != tree.get(path)})
        self.node.poweroff()
        self.check("at the end")

    def check(self, when):
        """e2fsck of the root file system: takes over the journal and clears orphans as a boot does, then has nothing to find."""
        (raw, offset), volume = left(self.node), self.node.folder / "volume.raw"
        # e2fsck does not find a volume within a disk again, once it has taken over the journal.
        call("dd", f"if={raw}", f"of={volume}", "bs=1M", f"skip={offset >> 20}", "conv=sparse", "status=none")
        raw.unlink()
        # 1: it did something, which was safe to do.
        results = [subprocess.run(["e2fsck", option, volume], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                   for option in ("-p", "-fn")]
        volume.unlink()
        case(f"{self.name}: e2fsck {when}", results[0].returncode in (0, 1) and results[1].returncode == 0, "".join(result.stdout for result in results))


def main():
    parser = argparse.ArgumentParser(description="cuts the power in the middle of first boots")
    parser.add_argument("image")
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--seed", type=int, help="for the points of an earlier run")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    chosen = random.Random(seed)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        cut = Cut(options.image, folder)
        with cut.node:
            tree, start, end = cut.undisturbed(cut.keep())
            print(f"the first-boot program works from {start:.1f} to {end:.1f} s after the data, {len(tree)} paths", flush=True)
            for number in range(options.points):
                seconds = chosen.uniform(start if number % 2 else 0, end)
                cut.name = f"point {number + 1}, {seconds:.2f} s"
                cut.cut(seconds, tree)
    print(f"{options.points} points, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
