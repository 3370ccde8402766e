"""One machine for all tests of this directory, which run in order: a baked node below systemd-nspawn, with its own systemd, sshd and rsync."""

import pathlib
import tempfile

import pytest

from harness import life
from harness.dev_sync import Developer, Layers, Node
from harness.machine import ADDRESS
from harness.report import case


@pytest.fixture(scope="package")
def folder():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="package")
def layers(folder):
    return Layers(folder / "layers", "containerd")


@pytest.fixture(scope="package")
def image(kinds):
    return kinds / "knd.debian-13.amd64.raw"


@pytest.fixture(scope="package")
def node(image, folder):
    with Node(image, folder, "sync") as node:
        yield node


@pytest.fixture(scope="package")
def dev(vmbake, node, folder, layers):
    """A developer who can log in to the node, which is configured."""
    dev = Developer(vmbake, folder, layers, ["ip", "netns", "exec", node.network.name])
    node.prepare()
    node.let_in(dev.key)
    life.begin(node)
    case("the node is configured", node.until(lambda: node.show(life.FIRST)[life.FIRST]["ActiveState"] == "active") and node.settled(), node.failed())
    return dev


@pytest.fixture(scope="package")
def target():
    return f"root@{ADDRESS}"
