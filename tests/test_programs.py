"""Checks that are separate programs: each prints its results and exits with 0 on success."""

import shlex
import subprocess

import pytest

from harness.paths import ROOT

INPUTS = ("vmbake", "base", "rootfs", "store", "manifest", "release", "baked", "kinds", "examples", "name")
# Machines, and nodes below systemd-nspawn: they mostly wait, or keep one core busy.
BOOT = {
    "knc": "qemu-tests/run.py --case knc --images {kinds}",
}
SLOW = {
    "closure": "tests/closure.py {examples}/closure",
    "packages": "tests/packages.py {vmbake} {base} {rootfs} --list tests/packages.list --list tests/packages.drawn",
    "scripts": "tests/scripts.py {examples}/trace {rootfs}",
    "vendors": "tests/vendors.py {vmbake} {base} {rootfs}",
}


def parameters():
    for programs, marks in ((BOOT, pytest.mark.boot), (SLOW, pytest.mark.slow)):
        yield from (pytest.param(command, id=name, marks=marks) for name, command in programs.items())


@pytest.mark.parametrize("command", list(parameters()))
def test_program(command, request):
    values = {key: shlex.quote(str(request.getfixturevalue(key))) for key in INPUTS if f"{{{key}}}" in command}
    assert subprocess.run(command.format(**values), shell=True, cwd=ROOT).returncode == 0
