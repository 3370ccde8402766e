"""The container images in a raw disk image, packed as the unit in docs/layer-artifacts.md does, and read as `docker load` does: by skopeo, and by a Docker daemon
without network. Needs root."""

import hashlib
import json
import pathlib
import subprocess
import tempfile

import pytest

from harness.mount import Mount
from harness.report import case
from harness.run import must, run, until

pytestmark = [pytest.mark.boot, pytest.mark.needs("root")]
LAYOUT = "var/lib/container-images/oci"


@pytest.fixture(scope="module")
def packed(kinds):
    """The archive, and of each image its name and its configuration."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        work, expected = pathlib.Path(folder), {}
        with Mount(kinds / "knc.debian-13.amd64.raw", work / "mount") as mount:
            layout = pathlib.Path(mount.root, LAYOUT)
            must("tar", "--directory", layout, "--create", "--file", work / "images.tar", ".")
            # From the index, independent of the tested list.
            for entry in json.loads((layout / "index.json").read_text())["manifests"]:
                manifest = json.loads(blob(layout, entry["digest"]))
                expected[entry["annotations"]["io.containerd.image.name"]] = blob(layout, manifest["config"]["digest"])
        assert expected, LAYOUT
        yield work / "images.tar", expected


def blob(layout, digest):
    algorithm, value = digest.split(":")
    data = (layout / "blobs" / algorithm / value).read_bytes()
    assert hashlib.new(algorithm, data).hexdigest() == value, digest
    return data


@pytest.mark.needs("skopeo")
def test_docker_load_by_skopeo(packed):
    archive, expected = packed
    for name, config in expected.items():
        assert must("skopeo", "inspect", "--raw", "--config", f"docker-archive:{archive}:{name}").encode() == config


@pytest.mark.slow
@pytest.mark.needs("dockerd")
def test_docker_load_by_daemon(packed, work):
    archive, expected = packed
    socket = f"unix://{work}/docker.sock"
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"]
    folders = [f"--data-root={work}/data", f"--exec-root={work}/exec", f"--pidfile={work}/pid", f"--host={socket}"]
    with open(work / "log", "w") as log, subprocess.Popen(["dockerd", *options, *folders], stdout=log, stderr=log) as daemon:
        try:
            until(lambda: daemon.poll() is not None or run("docker", "--host", socket, "info", "--format", "{{.ServerVersion}}").stdout[:1].isdigit())
            loaded = must("docker", "--host", socket, "load", "--input", archive)
            case("docker load reads the archive", loaded.count("Loaded image") == len(expected), loaded)
            for name, config in expected.items():
                found = run("docker", "--host", socket, "image", "inspect", "--format", "{{.Id}}", name)
                case(f"docker has {name}", found.stdout.strip() == "sha256:" + hashlib.sha256(config).hexdigest(), found)
        finally:
            daemon.terminate()
