"""Each layer below examples/ is baked as in its documentation, with `update`, `fetch` and `bake`, and the contents of the image are checked. The slow tests boot it
by `vmbake boot --check`, and it must answer: a page, a query, a container that runs.

The packages are Debian's of today. k3s comes from a release site: `make kinds-images` bakes it from one on loopback, with a stand-in for its program.
"""

import shutil

import pytest

from harness.paths import ROOT
from harness.run import must

ELSEWHERE = {"k3s"}
# Of a machine under emulation; a check that holds ends the machine at once.
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


@pytest.fixture
def bake(vmbake, store, work):
    """Bakes an example in a directory as in the tutorial, with the examples as layers."""
    shutil.copytree(ROOT / "examples", work / "layers")

    def bake(name, base, arch="amd64"):
        places = ["--store", store, "--arch", arch]
        must(vmbake, "update", name, "--image", base, *places, cwd=work)
        must(vmbake, "fetch", name, *places, cwd=work)
        must(vmbake, "bake", name, "--base", base, *places, "--offline", "--format", "raw", "--out", "dist", cwd=work)
        return work / f"dist/{name}.debian-13.{arch}.raw"
    return bake


def test_every_example_is_tested():
    assert {path.parent.name for path in ROOT.glob("examples/*/layer.json")} - ELSEWHERE == set(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(vmbake, base, bake, example):
    image = bake(example, base)
    for path in EXAMPLES[example][0]:
        must(vmbake, "ls", image, path)


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize(("example", "arch"), [*((name, "amd64") for name in EXAMPLES), ("web", "arm64")])
def test_examples_boot(request, vmbake, bake, example, arch):
    base = request.getfixturevalue("base" if arch == "amd64" else "base_arm64")
    _, firmware, checks = EXAMPLES[example]
    checks = [word for check in [*checks, "no-failed-units"] for word in ("--check", check)]
    must(vmbake, "boot", bake(example, base, arch), "--firmware", "uefi" if arch == "arm64" else firmware, "--network", "isolated", "--memory", "2G", "--size", "+1G",
         "--timeout", TIMEOUT, *checks)
