#!/usr/bin/env python3
"""node-artifacts.py APT_CONF MANIFEST BASE: writes the manifest of kind node and fills the store.

The Debian packages that containerd, runc and the CNI plugins need beyond those installed in the base image are resolved, downloaded and verified by apt. The container image that is baked in is made here, from
busybox-static, with the same bytes on every run. The base image is pinned too. Everything goes into the store
($STORE, by default the user's own) under its SHA-256.
"""

import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse

WANTED = ["containerd", "runc", "containernetworking-plugins"]
ARCH = "amd64"


def store_root():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(os.environ.get("STORE") or f"{cache}/vmbake/store")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep(path):
    """Copies a file into the store, whole or not at all; returns its manifest fields."""
    digest = sha256(path)
    blobs = store_root() / "blobs/sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    if not (blobs / digest).exists():
        with tempfile.NamedTemporaryFile(dir=blobs, delete=False) as partial, open(path, "rb") as source:
            shutil.copyfileobj(source, partial)
        os.chmod(partial.name, 0o444)
        os.replace(partial.name, blobs / digest)
    return {"digest": f"sha256:{digest}", "size": os.path.getsize(path)}


def apt(conf, *arguments, cwd=None):
    environment = {**os.environ, "APT_CONFIG": conf}
    return subprocess.run(["apt-get", "-qq", *arguments], env=environment, cwd=cwd, check=True, capture_output=True, text=True).stdout


def closure(conf):
    """Names of the packages that would be installed."""
    # Inst NAME (VERSION Debian:13/stable [ARCH])
    lines = apt(conf, "-s", "install", *WANTED).splitlines()
    return sorted(line.split()[1].split(":")[0] for line in lines if line.startswith("Inst "))


def download(conf, name, folder):
    """One package by apt, which checks it against the signed index; returns its path, its path in the archive and its version."""
    uri = apt(conf, "download", "--print-uris", name).split("'")[1]
    apt(conf, "download", name, cwd=folder)
    [path] = pathlib.Path(folder).glob(f"{name}_*.deb")
    version = subprocess.run(["dpkg-deb", "-f", path, "Version"], check=True, capture_output=True, text=True).stdout.strip()
    return path, urllib.parse.unquote("pool/" + uri.split("/pool/", 1)[1]), version


def busybox_image(deb, folder):
    """A container image of nothing but busybox, in the format of `docker save`."""
    subprocess.run(["dpkg-deb", "-x", deb, f"{folder}/root"], check=True)
    program = next(path for path in (f"{folder}/root/usr/bin/busybox", f"{folder}/root/bin/busybox") if os.path.exists(path))
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, "bin", None)
        add(tar, "bin/busybox", open(program, "rb").read(), 0o755)
    layer = layer.getvalue()
    config = {
        "architecture": ARCH,
        "config": {"Cmd": ["/bin/busybox", "sh"], "Env": ["PATH=/bin"]},
        "os": "linux",
        "rootfs": {"diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()], "type": "layers"},
    }
    config = json.dumps(config, sort_keys=True).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    index = [{"Config": config_name, "Layers": ["layer.tar"], "RepoTags": ["docker.io/library/busybox:baked"]}]
    path = f"{folder}/busybox-image.tar"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, config_name, config)
        add(tar, "layer.tar", layer)
        add(tar, "manifest.json", json.dumps(index, sort_keys=True).encode())
    return path


def add(tar, name, content, mode=0o644):
    """Adds a file, or a directory when there is no content, with nothing in it that changes from run to run."""
    info = tarfile.TarInfo(name)
    info.mode = mode if content is not None else 0o755
    info.type = tarfile.REGTYPE if content is not None else tarfile.DIRTYPE
    info.size = len(content or b"")
    tar.addfile(info, io.BytesIO(content or b""))


def main(conf, manifest, base):
    dependencies = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in closure(conf):
            path, url, version = download(conf, name, folder)
            dependencies[name] = {**keep(path), "type": "deb", "url": f"debian:{url}", "version": version}
        deb, _, version = download(conf, "busybox-static", folder)
        image = busybox_image(deb, folder)
        dependencies["busybox-image"] = {**keep(image), "type": "tar", "url": "build:busybox-image", "version": version}
    image = {"digest": f"sha256:{sha256(base)}", "size": os.path.getsize(base), "type": "qcow2", "url": "build:base", "version": "local"}
    system = {"arch": ARCH, "image": image, "name": "debian-13"}
    document = {"vmconfig": {"dependencies": dependencies, "kind": "node", "os": system, "version": "dev"}}
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    partial = f"{manifest}.partial"
    pathlib.Path(partial).write_text(text)
    os.replace(partial, manifest)


main(*sys.argv[1:])
