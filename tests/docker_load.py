#!/usr/bin/env python3
"""docker_load.py IMAGE [--daemon]: packs the container images in a raw disk image as the unit in docs/layer-artifacts.md does, and reads the archive as
`docker load` does: by skopeo, and with --daemon by a Docker daemon without network. Prints `ok: NAME` or `FAIL: NAME` for each case. Needs root.
"""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from kinds import Mount

from harness.report import case, failures, skip

LAYOUT = "var/lib/container-images/oci"


def said(*command):
    ran = subprocess.run(command, text=True, capture_output=True, check=False)
    return ran.stdout if ran.returncode == 0 else f"status {ran.returncode}: {ran.stderr}"


def archive(image, work):
    """The archive, and of each image its name, the digest of its configuration and the digests of its layers."""
    mount = Mount(image, work / "mount")
    try:
        layout = pathlib.Path(mount.root, LAYOUT)
        subprocess.run(["tar", "--directory", layout, "--create", "--file", work / "images.tar", "."], check=True)
        expected = {}
        # From the index, independent of the tested list.
        for entry in json.loads((layout / "index.json").read_text())["manifests"]:
            manifest = json.loads(blob(layout, entry["digest"]))
            config = blob(layout, manifest["config"]["digest"])
            expected[entry["annotations"]["io.containerd.image.name"]] = config
        return work / "images.tar", expected
    finally:
        mount.close()


def blob(layout, digest):
    algorithm, value = digest.split(":")
    data = (layout / "blobs" / algorithm / value).read_bytes()
    assert hashlib.new(algorithm, data).hexdigest() == value, digest
    return data


def by_skopeo(packed, expected):
    for name, config in expected.items():
        found = said("skopeo", "inspect", "--raw", "--config", f"docker-archive:{packed}:{name}")
        case(f"skopeo finds {name} in the archive of docker load", found.encode() == config, found)


def by_daemon(packed, expected, work):
    socket = f"unix://{work}/docker.sock"
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs"]
    folders = [f"--data-root={work}/data", f"--exec-root={work}/exec", f"--pidfile={work}/pid", f"--host={socket}"]
    with open(work / "log", "w") as log, subprocess.Popen(["dockerd", *options, *folders], stdout=log, stderr=log) as daemon:
        # Until the daemon answers; the first case fails if it does not within a minute.
        for _ in range(120):
            if daemon.poll() is not None or said("docker", "--host", socket, "info", "--format", "{{.ServerVersion}}")[:1].isdigit():
                break
            time.sleep(0.5)
        loaded = said("docker", "--host", socket, "load", "--input", str(packed))
        case("docker load reads the archive", loaded.count("Loaded image") == len(expected), loaded)
        for name, config in expected.items():
            found = said("docker", "--host", socket, "image", "inspect", "--format", "{{.Id}}", name)
            case(f"docker has {name}", found.strip() == "sha256:" + hashlib.sha256(config).hexdigest(), found)
        daemon.terminate()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("--daemon", action="store_true")
    options = parser.parse_args()
    if os.getuid() != 0:
        return skip("needs root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        work = pathlib.Path(folder)
        packed, expected = archive(options.image, work)
        case("the image has container images", bool(expected), LAYOUT)
        by_skopeo(packed, expected)
        if options.daemon:
            by_daemon(packed, expected, work)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
