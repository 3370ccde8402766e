"""The first-boot programs of both architectures are small, and run without any library."""

import pytest

from harness.paths import TARGET
from harness.run import must

LIMIT = 700 * 1024
EMULATORS = {"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}


@pytest.mark.parametrize("arch", EMULATORS)
def test_firstboot(arch):
    program = TARGET / "firstboot" / arch / "firstboot"
    assert program.stat().st_size <= LIMIT
    # The builder's own build refuses one with an interpreter.
    under = [] if must("dpkg", "--print-architecture").strip() == arch else [EMULATORS[arch]]
    assert must(*under, program, "--version").startswith("firstboot ")
