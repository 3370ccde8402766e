"""Packages of the Debian archive in an image are what the real dpkg makes of them: packages.list has chosen and random ones, see packages.md.

Needs root, for chroot and mounts, and the Debian archive. VMBAKE_TEST_PACKAGES names other packages instead.
"""

import os
import pathlib
import tempfile

import pytest

from harness.packages import Bench
from harness.paths import TESTS

pytestmark = [pytest.mark.slow, pytest.mark.needs("root")]


def names():
    if asked := os.environ.get("VMBAKE_TEST_PACKAGES"):
        return asked.split()
    lines = [line for name in ("packages.list", "packages.drawn") for line in (TESTS / name).read_text().splitlines()]
    return [name for line in lines if (name := line.split("#")[0].strip())]


@pytest.fixture(scope="module")
def bench(vmbake, base, rootfs):
    with tempfile.TemporaryDirectory() as work:
        yield Bench(vmbake, base, rootfs, pathlib.Path(work))


@pytest.mark.parametrize("package", names())
def test_package(bench, package):
    result = bench.judge(package)
    print({key: value for key, value in result.items() if key in ("packages", "paths", "seconds")})
    assert result["state"] in ("ok", "waits"), "\n".join([result["state"], *result.get("said", [])])
