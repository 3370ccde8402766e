#!/usr/bin/env python3
"""inputs.py FOLDER SCALE ARCH=BASE...: creates the inputs of the table in FOLDER: for each architecture the artifacts of knd and knc
that upstream/bake.py baked, in the sizes of real releases, about 650 MB, and manifests that pin the disk image BASE as well.

The release sites on loopback (upstream/) serve real programs where Debian has them, and small stand-ins for the others. Here each
stand-in is filled up to the size of a release with bytes of a real program, kubectl, each from a different offset: so each compresses as
programs do, and no two are the same. Manifests, store and folders are laid out as by upstream/bake.py.
"""

import fcntl
import gzip
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

from harness.upstream import bake

ARCH = "amd64"
# The program that each artifact of another size contains, in MB: those of linux-amd64 releases of 2025, rounded.
PROGRAMS_MB = {"kubelet": 60, "kube-apiserver": 86, "kube-controller-manager": 73, "kube-scheduler": 52, "zot": 140, "crictl": 42,
               "kube2iam": 30, "nstance-agent": 40, "netsy": 45, "fluent-bit": 90}
FILLER = "kubectl"
# The changed part of a release of one artifact, and the number of such releases: no run bakes one that another has baked.
CHANGED, CHANGED_MB, RELEASES = "kubelet", 60, 5


class Inputs:
    """Manifests of an architecture, and a store, below `folder`."""

    def __init__(self, folder, arch=ARCH):
        self.folder = pathlib.Path(folder)
        self.store = self.folder / "store"
        # These artifacts are not signed: the manifests are pinned manually, without a source.
        self.sources = self.folder / "sources.json"
        self.manifests = {kind: self.folder / f"manifests/{bake.target(kind, arch)}.json" for kind in bake.KINDS}
        # The same, with a base image that is in the store.
        self.pinned = {kind: self.folder / f"pinned/{path.name}" for kind, path in self.manifests.items()}
        self.releases = [self.folder / f"releases/{number}.json" for number in range(RELEASES)]

    def blob(self, artifact):
        return self.store / "blobs" / artifact["digest"].replace(":", "/")

    def artifacts(self, kind):
        return json.loads(self.manifests[kind].read_text())["vmconfig"]["dependencies"]

    def archives(self, kind):
        """The gzipped tar archives of a kind."""
        return [self.blob(artifact) for artifact in self.artifacts(kind).values() if artifact["type"] == "tar.gz"]

    def bytes(self, kind):
        return sum(artifact["size"] for artifact in self.artifacts(kind).values())


def make(folder, scale, bases):
    """Creates the inputs unless they exist; programs have `scale` times their size. `bases` are disk images by architecture."""
    folder = pathlib.Path(folder)
    with open(bake.FOLDER / "lock", "a") as lock:
        # They are not baked meanwhile.
        fcntl.flock(lock, fcntl.LOCK_SH)
        sources = {arch: Inputs(bake.FOLDER / arch, arch) for arch in bases}
        texts = [path.read_bytes() for source in sources.values() for path in source.manifests.values()]
        key = hashlib.sha256(pathlib.Path(__file__).read_bytes() + b"".join(texts) + f"{scale} {bases}".encode()).hexdigest()
        if (folder / "key").exists() and (folder / "key").read_text() == key:
            return
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("manifests", "pinned", "releases"):
            (folder / name).mkdir(parents=True)
        Inputs(folder).sources.write_text(json.dumps({"archives": {}, "systems": {}, "dependencies": []}))
        for arch, source in sources.items():
            made = Inputs(folder, arch)
            # Both architectures have some of them.
            shutil.copytree(source.store / "blobs", made.store / "blobs", dirs_exist_ok=True, copy_function=_copy)
            _enlarge(made, source, scale)
            _pin(made, pathlib.Path(bases[arch]).read_bytes())
        _change(Inputs(folder), sources[ARCH], scale)
        (folder / "key").write_text(key)


def _copy(blob, to):
    if not os.path.exists(to):
        shutil.copy(blob, to)


def _enlarge(made, source, scale):
    filler = source.blob(source.artifacts("knc")[FILLER]).read_bytes()
    # A knd is a knc without the control plane.
    changes = {}
    for name, artifact in source.artifacts("knc").items():
        if megabytes := PROGRAMS_MB.get(name):
            size = int(megabytes * 1e6 * scale)
            made.blob(artifact).unlink(missing_ok=True)
            content = WAYS[artifact["type"]](source.blob(artifact), lambda program, n=name, s=size: fill(program, s, filler, n))
            changes[name] = put(made, artifact["digest"], content)
    for kind, path in source.manifests.items():
        document = json.loads(path.read_text())
        for name, artifact in document["vmconfig"]["dependencies"].items():
            artifact.update(changes.get(name, {}))
            artifact.pop("proof", None)
        made.manifests[kind].write_text(text(document))


def _pin(made, base):
    """Writes the manifests that pin a base image."""
    for kind, path in made.manifests.items():
        document = json.loads(path.read_text())
        pinned = {"type": "qcow2", "url": "https://example.org/base.qcow2", "version": "1", **put(made, "sha256:", base)}
        document["vmconfig"]["os"]["image"] = pinned
        made.pinned[kind].write_text(text(document))


def _change(made, source, scale):
    """Creates the releases of one artifact."""
    filler, program = (source.blob(source.artifacts("knc")[name]).read_bytes() for name in (FILLER, CHANGED))
    document = json.loads(made.manifests["knc"].read_text())
    artifact = document["vmconfig"]["dependencies"][CHANGED]
    for number, path in enumerate(made.releases):
        # Each a little larger than the one before.
        size = int((CHANGED_MB * 1e6 + 100_000 * (number + 1)) * scale)
        artifact.update(put(made, artifact["digest"], fill(program, size, filler, f"release {number}")))
        path.write_text(text(document))


def text(document):
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def put(made, digest, content):
    """Writes a blob, with a digest of the same kind; returns its entry of an artifact."""
    algorithm = digest.split(":")[0]
    pinned = {"digest": f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}", "size": len(content)}
    made.blob(pinned).write_bytes(content)
    return pinned


def fill(program, size, filler, name):
    """The program with filler behind it, from a place on that is the name's."""
    missing = size - len(program)
    if missing <= 0:
        return program
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % len(filler)
    turned = filler[start:] + filler[:start]
    return program + (turned * (missing // len(filler) + 1))[:missing]


def binary(blob, enlarge):
    return enlarge(blob.read_bytes())


def archive(blob, enlarge):
    """The archive with its largest member enlarged."""
    packed = io.BytesIO()
    with tarfile.open(blob) as old, gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as file:
        largest = max(old.getmembers(), key=lambda member: member.size).name
        with tarfile.open(fileobj=file, mode="w", format=old.format) as new:
            for member in old.getmembers():
                content = old.extractfile(member)
                if member.name == largest:
                    enlarged = enlarge(content.read())
                    member.size, content = len(enlarged), io.BytesIO(enlarged)
                new.addfile(member, content)
    return packed.getvalue()


def package(blob, enlarge):
    """The package with its largest file enlarged."""
    with tempfile.TemporaryDirectory() as folder:
        root, made = pathlib.Path(folder, "root"), pathlib.Path(folder, "made.deb")
        subprocess.run(["dpkg-deb", "-R", blob, root], check=True)
        largest = max((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        old = largest.read_bytes()
        new = enlarge(old)
        largest.write_bytes(new)
        sums = root / "DEBIAN/md5sums"
        sums.write_text(sums.read_text().replace(hashlib.md5(old).hexdigest(), hashlib.md5(new).hexdigest()))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, made], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": bake.EPOCH})
        return made.read_bytes()


WAYS = {"binary": binary, "tar.gz": archive, "deb": package}

if __name__ == "__main__":
    make(sys.argv[1], float(sys.argv[2]), dict(base.split("=", 1) for base in sys.argv[3:]))
