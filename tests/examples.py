#!/usr/bin/env python3
"""examples.py VMBAKE BASE STORE [--boot] [--arch ARCH] [--only NAME]...: bakes each layer below examples/ as in its documentation, with
`update`, `fetch` and `bake`, and checks the contents of the image. With --boot each is booted by `vmbake boot --check` instead, and must
answer: a page, a query, a container that runs. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.

The packages are Debian's of today. k3s comes from a release site: `make kinds-images` bakes it from one on loopback, with a stand-in for its program.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness.paths import ROOT
from harness.report import case, failures

ELSEWHERE = {"k3s"}
# Under emulation; a check that holds ends the machine at once.
TIMEOUT = "1200"
# Per example: required paths of its image, boot firmware, and checks.
SMALL = "usr/bin/echo $(find /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* | head -1) $(find /usr/lib -name libc.so.6)"
# Two hosts on either side, of which the outer one has no route back: it answers an address of the machine alone.
TRANSLATED = "; ".join([
    "for side in in:10.9.0 out:198.51.100", "do name=${side%:*} net=${side#*:}", "ip netns add $name", "ip link add nat-$name type veth peer name eth0 netns $name",
    "ip addr add $net.1/24 dev nat-$name", "ip link set nat-$name up", "ip -n $name addr add $net.2/24 dev eth0", "ip -n $name link set eth0 up", "done",
    "ip -n in route add default via 10.9.0.1", "timeout 20 ip netns exec in bash -c '</dev/tcp/198.51.100.2/9' 2>&1 | grep -q refused",
])
EXAMPLES = {
    "hello": (["/usr/local/bin/hello"], "bios", ["run=runuser -l greeter </dev/null | grep -q ."]),
    "web": (
        ["/etc/systemd/system/multi-user.target.wants/nginx.service", "/var/www/html/index.html"], "bios",
        ["unit=nginx.service", "http:80/=200", "file=/var/www/html/index.html"]),
    "postgres": (
        ["/etc/postgresql-common/createcluster.d/site.conf", "/usr/lib/postgresql"], "bios",
        ["unit=postgresql@17-main.service", "run=runuser -u postgres -- psql -Atc 'select 6*7' | grep -qx 42"]),
    "docker-host": (
        ["/etc/docker/daemon.json", "/usr/bin/docker"], "uefi",
        ["unit=docker.service",
         f"run=tar -C / -ch {SMALL} | docker import - small && docker run --rm --network none small /usr/bin/echo it runs | grep -qx 'it runs'"]),
    "nat": (
        ["/etc/nftables.conf", "/etc/sysctl.d/60-nat.conf", "/etc/systemd/system/sysinit.target.wants/nftables.service"], "bios",
        ["unit=nftables.service", f"run={TRANSLATED}"]),
    "bastion": (
        ["/etc/ssh/sshd_config.d/10-bastion.conf", "/etc/systemd/system/sysinit.target.wants/nftables.service"], "uefi",
        ["unit=ssh.service", "unit=nftables.service", "unit=fail2ban.service", "tcp:22",
         "run=sshd -T | grep -qx 'passwordauthentication no' && nft list chain inet filter input | grep -q 'policy drop'"]),
}


class Lab:
    """A directory as in the tutorial, with the examples as layers."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        shutil.copytree(ROOT / "examples", folder / "layers")

    def vmbake(self, *args):
        ran = subprocess.run([self.options.vmbake, *map(str, args)], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ran.returncode, ran.stdout

    def bake(self, name):
        """The image of an example, or the error."""
        base, store = self.options.base, ["--store", self.options.store, "--arch", self.options.arch]
        steps = [
            ["update", name, "--image", base, *store],
            ["fetch", name, *store],
            ["bake", name, "--base", base, *store, "--offline", "--format", "raw", "--out", "dist"],
        ]
        for step in steps:
            status, said = self.vmbake(*step)
            if status:
                return None, said
        return self.folder / f"dist/{name}.debian-13.{self.options.arch}.raw", said

    def judge(self, name):
        paths, firmware, checks = EXAMPLES[name]
        image, said = self.bake(name)
        case(f"{name} bakes", image is not None, said)
        if image is None:
            return
        if self.options.boot:
            self.boot(name, image, "uefi" if self.options.arch == "arm64" else firmware, checks)
        else:
            for path in paths:
                status, said = self.vmbake("ls", image, path)
                case(f"{name} has {path}", status == 0, said)
        image.unlink()

    def boot(self, name, image, firmware, checks):
        checks = [word for check in [*checks, "no-failed-units"] for word in ("--check", check)]
        status, said = self.vmbake("boot", image, "--firmware", firmware, "--network", "isolated", "--memory", "2G", "--size", "+1G", "--timeout", TIMEOUT, *checks)
        case(f"{name} boots ({self.options.arch}, {firmware}) and answers", status == 0, said)
        print("".join(f"      {line}\n" for line in said.splitlines() if line.startswith("ok ")), end="", flush=True)


def main():
    parser = argparse.ArgumentParser()
    for name in "vmbake", "base", "store":
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--boot", action="store_true")
    parser.add_argument("--arch", default="amd64")
    parser.add_argument("--only", action="append", choices=EXAMPLES, metavar="NAME")
    options = parser.parse_args()
    options.vmbake, options.base, options.store = (path.resolve() for path in (options.vmbake, options.base, options.store))
    there = {path.parent.name for path in ROOT.glob("examples/*/layer.json")}
    case("every example is judged", there - ELSEWHERE == set(EXAMPLES), there ^ set(EXAMPLES))
    with tempfile.TemporaryDirectory(prefix="examples.", dir="/var/tmp") as folder:
        lab = Lab(options, pathlib.Path(folder))
        for name in options.only or EXAMPLES:
            lab.judge(name)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
