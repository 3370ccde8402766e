"""The release sites that profiles download from, on loopback, and vmbake run against them.

`sites` fills a folder with stand-ins in the layouts of the upstreams, with checksums; `Lab` serves it, and runs vmbake with mirrors that lead there.
"""

import gzip
import hashlib
import io
import os
import pathlib
import subprocess
import tarfile

from harness.report import case, note_skipped
from harness.upstream.sites import Sites

HERE = pathlib.Path(__file__).resolve().parent
PROFILE, DEPLOYMENT = HERE / "worker.yaml", HERE / "deployment.yaml"
KUBERNETES, CNI, CRICTL = "v1.34.2", "v1.9.1", "v1.34.0"
ARCHES = ("amd64", "arm64")
PLUGINS = ("bridge", "host-local", "loopback", "portmap")


def skipped(why):
    """A part that cannot run here: `make test` lists it at its end. In CI it is a failure."""
    print(f"skipped: {why}", flush=True)
    note_skipped(f"test_profiles.py: {why}")
    if os.environ.get("CI"):
        case(f"nothing is skipped in CI: {why}", False)


def stand_in(name, arch):
    """A program that prints its name."""
    return f"#!/bin/sh\necho {name} for {arch}\n".encode()


def kubelet(arch):
    return (HERE / "kubelet").read_bytes() + f"# For {arch}.\n".encode()


def tarball(members):
    """The same bytes on every run. Members have an owner, as in real releases."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime, info.uid, info.gid = len(content), 0o755, 1_700_000_000, 1001, 118
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def put(path, content, line="{sum}"):
    """A file of a site, and its checksum as that site writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.with_name(f"{path.name}.sha256").write_text(line.format(sum=hashlib.sha256(content).hexdigest(), name=path.name))


def sites(folder):
    """Fills folder/site."""
    releases = folder / "site/github.com"
    for arch in ARCHES:
        programs = folder / f"site/dl.k8s.io/{KUBERNETES}/bin/linux/{arch}"
        put(programs / "kubelet", kubelet(arch))
        for name in "kubeadm", "kubectl":
            put(programs / name, stand_in(name, arch))
        plugins = releases / f"containernetworking/plugins/releases/download/{CNI}/cni-plugins-linux-{arch}-{CNI}.tgz"
        put(plugins, tarball({f"./{name}": stand_in(name, arch) for name in PLUGINS}), "{sum}  {name}\n")
        crictl = releases / f"kubernetes-sigs/cri-tools/releases/download/{CRICTL}/crictl-{CRICTL}-linux-{arch}.tar.gz"
        put(crictl, tarball({"crictl": stand_in("crictl", arch)}), "{sum}\n")


class Lab:
    """The sites, a server for them, and vmbake run against it."""

    def __init__(self, vmbake, base, store, folder):
        self.vmbake, self.base, self.store, self.folder = vmbake, base, store, folder
        self.sites = folder / "sites"
        sites(self.sites)
        self.server = Sites(self.sites)
        self.mirrors = self.server.options

    def run(self, *words, before=(), **environment):
        """Exit status, stdout and stderr."""
        command = [str(word) for word in (*before, self.vmbake, *words)]
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def must(self, *words, **more):
        status, said, stderr = self.run(*words, **more)
        if status:
            raise RuntimeError(f"vmbake {' '.join(map(str, words))}: exit status {status}\n{said}{stderr}")
        return said

    def imports(self, out, *more, profile=PROFILE, deployment=DEPLOYMENT, **given):
        """Imports a profile and pins its artifacts; see `run`."""
        words = ("profile", "import", profile, "--machine-deployment", deployment, "--out", out, "--untested")
        return self.run(*words, *more, **given)

    def pins(self, store=None, base=None):
        """Options of an import that pins."""
        return ("--image", base or self.base, "--store", store or self.store, *self.mirrors)

    def bake(self, out, kind, *more):
        """The raw image of an import, with the time that images of tests have."""
        places = ("--layers", out / "layers", "--manifests", out / "manifests", "--store", self.store)
        self.must("fetch", kind, *places, *self.mirrors)
        formed = ("--offline", "--format", "raw", "--out", self.folder / "dist")
        self.must("bake", kind, *places, "--base", self.base, *formed, *more, SOURCE_DATE_EPOCH="1700000000")
        return self.folder / f"dist/{kind}.debian-13.amd64.raw"

    def fault(self, path, kind):
        """Has the site cheat at a path, /HOST/PATH, or not any more."""
        self.server.fault({path: {"kind": kind}} if path else {})

    def close(self):
        self.server.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
