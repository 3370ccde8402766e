"""An offline bake opens only local sockets."""

import re

import pytest

from harness.run import run

pytestmark = pytest.mark.needs("strace")


@pytest.fixture
def bake(vmbake, base, manifest):
    return [vmbake, "bake", "node", "--base", base, "--manifest", manifest]


def traced(work, *command):
    """The process, and its calls about the network."""
    done = run("strace", "-f", "-qq", "-e", "trace=network", "-o", work / "trace", *command)
    return done, (work / "trace").read_text()


def test_offline_bake_opens_no_socket(bake, store, work):
    done, calls = traced(work, *bake, "--offline", "--store", store, "--out", work / "out", "--format", "raw")
    assert done.returncode == 0, done.stderr
    assert not [line for line in calls.splitlines() if "AF_UNIX" not in line and re.search("socket|connect|send|recv|bind", line)]


def test_trace_sees_sockets_of_an_online_bake(bake, work):
    done, calls = traced(work, *bake, "--store", work / "empty", "--out", work / "out", "--format", "raw", "--mirror", "https://ftp.debian.org/=http://127.0.0.1:1/")
    assert done.returncode != 0
    assert "AF_INET" in calls
