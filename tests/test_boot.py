"""A node of the control plane boots in QEMU: one case of qemu-tests, which `make test-boot-all` runs completely."""

import subprocess

import pytest

from harness.paths import ROOT


@pytest.mark.boot
def test_boot(kinds):
    assert subprocess.run([ROOT / "qemu-tests/run.py", "--case", "knc", "--images", kinds], cwd=ROOT).returncode == 0
