"""Packages that a layer removes leave what the real `dpkg --purge` leaves, alone and with a package that takes their place.

Needs root, for chroot and mounts, and the Debian archive.
"""

import pathlib
import tempfile

import pytest

from harness.packages import Bench

pytestmark = [pytest.mark.slow, pytest.mark.needs("root")]

# Packages of the base image: what is removed, and what is installed.
OF_BASE = [
    (["nano"], []),
    (["less"], []),
    (["curl"], []),
    (["dosfstools"], []),
    (["apparmor"], []),
    (["unattended-upgrades"], []),
    (["iputils-ping"], []),
    (["systemd-timesyncd"], []),
    (["systemd-timesyncd"], ["chrony"]),
    (["systemd-timesyncd"], ["ntpsec"]),
]
# Packages of an image that was baked with them: daemons, alternatives, diversions, debconf questions, accounts, ucf, triggers.
MORE = ["cron", "man-db", "vim-tiny", "rsyslog", "logrotate", "exim4-daemon-light", "nginx", "bash-completion", "mawk", "gawk", "tzdata", "locales"]
OF_MORE = [["cron", "cron-daemon-common"], ["man-db"], ["vim-tiny"], ["rsyslog"], ["exim4-daemon-light", "exim4-base", "exim4-config"],
           ["nginx"], ["bash-completion"], ["gawk"]]


@pytest.fixture(scope="module")
def bench(vmbake, base, rootfs):
    with tempfile.TemporaryDirectory() as work:
        yield Bench(vmbake, base, rootfs, pathlib.Path(work))


@pytest.fixture(scope="module")
def more(vmbake, bench):
    """A bench whose base has more packages."""
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        folder = work / "base"
        folder.mkdir()
        kind, said, _ = bench.bake(folder, "more", packages=MORE)
        assert not said, said
        status, _, said = bench.run(folder, "bake", kind, "--base", bench.base, "--store", bench.store, "--offline", "--format", "tar", "--out", "tar")
        assert status == 0, said
        yield Bench(vmbake, next((folder / "dist").glob("*.raw")), next((folder / "tar").glob("*.tar")), work)


def check(result):
    print({key: value for key, value in result.items() if key in ("packages", "paths", "seconds")})
    assert result["state"] in ("ok", "waits"), "\n".join([result["state"], *result.get("said", [])])


@pytest.mark.parametrize(("removed", "packages"), OF_BASE, ids=lambda names: "+".join(names) or "nothing")
def test_of_base(bench, removed, packages):
    check(bench.judge("removal", removed, **({"packages": packages} if packages else {})))


@pytest.mark.parametrize("removed", OF_MORE, ids="+".join)
def test_of_more(more, removed):
    check(more.judge("removal", removed))


@pytest.mark.parametrize(("package", "expected"), [("bash", "has `Essential: yes`"), ("sudo", "its prerm"), ("libc6", "depends on libc6"), ("locales", "cloud-init depends on locales")])
def test_refused(bench, package, expected):
    result = bench.judge("removal", [package])
    assert result["state"] == "refused" and expected in "\n".join(result["said"]), result
