"""Checks that are separate programs: each prints its results and exits with 0 on success."""

import shlex
import subprocess

import pytest

from harness.paths import ROOT

INPUTS = ("vmbake", "base", "rootfs", "store", "manifest", "release", "baked", "kinds", "examples", "name")
IN_TEST = {
    "upstream": "tests/upstream.py {vmbake}",
    "profiles": "tests/profiles.py {vmbake} {base} {store}",
    "aws": "tests/publish.py {vmbake}",
    "examples": "tests/examples.py {vmbake} {base} {store}",
    "sbom": "tests/sbom.py {vmbake} {release} {store}",
    "report": "tests/report_page.py {vmbake} {release} target/report",
    "bases": "tests/bases.py {vmbake} {base} {manifest} {store} --quick",
    "templates": "tests/templates.py {vmbake}",
}
# Machines, and nodes below systemd-nspawn: they mostly wait, or keep one core busy.
BOOT = {
    "knc": "qemu-tests/run.py --case knc --images {kinds}",
    "kinds": "tests/kinds.py {vmbake} {base}",
    "docker-load": "tests/docker_load.py {kinds}/knc.debian-13.amd64.raw",
    "podplane": "tests/podplane.py {vmbake} {base}",
}
SLOW = {
    "aws-all": "tests/publish.py {vmbake} --all",
    "bases-all": "tests/bases.py {vmbake} {base} {manifest} {store}",
    "closure": "tests/closure.py {examples}/closure",
    "dev-sync": "tests/dev_sync.py {vmbake} {kinds}/knd.debian-13.amd64.raw",
    "docker-daemon": "tests/docker_load.py {kinds}/knc.debian-13.amd64.raw --daemon",
    "packages": "tests/packages.py {vmbake} {base} {rootfs} --list tests/packages.list --list tests/packages.drawn",
    "recipe": "tests/recipe.py {vmbake} {manifest} {base} {store}",
    "scripts": "tests/scripts.py {examples}/trace {rootfs}",
    "vendors": "tests/vendors.py {vmbake} {base} {rootfs}",
    "volumes": "tests/volumes.py {examples}/tree",
}


def parameters():
    for programs, marks in ((IN_TEST, ()), (BOOT, pytest.mark.boot), (SLOW, pytest.mark.slow)):
        yield from (pytest.param(command, id=name, marks=marks) for name, command in programs.items())


@pytest.mark.parametrize("command", list(parameters()))
def test_program(command, request):
    values = {key: shlex.quote(str(request.getfixturevalue(key))) for key in INPUTS if f"{{{key}}}" in command}
    assert subprocess.run(command.format(**values), shell=True, cwd=ROOT).returncode == 0
