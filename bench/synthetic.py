#!/usr/bin/env python3
"""synthetic.py FOLDER AXIS VALUE: layers, manifest and store of kind `growth` that only differ in one thing, AXIS:

files   VALUE files of 100 bytes, in directories of 1000, in archives of 100,000
bytes   VALUE GiB of content: so many files of 1 GiB, each the same blob, of which one copy is in the store. zstd makes a quarter of it
layers  VALUE layers, each with an archive of 20 files of 50 KB, 20 further files, a directory and a user
"""

import hashlib
import io
import json
import pathlib
import random
import shutil
import sys
import tarfile

from harness.paths import ROOT

KIND, OS, ARCH = "growth", "debian-13", "amd64"
PER_DIRECTORY, PER_ARCHIVE = 1000, 100_000
GIB = 1 << 30
CHUNK = 1 << 20


class Made:
    """Where the layers, the manifest and the store are."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.layers, self.store, self.manifest = self.folder / "layers", self.folder / "store", self.folder / "manifest.json"


class Maker(Made):
    def __init__(self, folder):
        super().__init__(folder)
        self.dependencies = {}
        (self.store / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        self.layers.mkdir()
        shutil.copytree(ROOT / "layers/hygiene", self.layers / "hygiene")

    def blob(self, write):
        """A blob that `write` writes; (digest, size)."""
        partial = self.store / "blobs/partial"
        with open(partial, "wb") as file:
            write(file)
        with open(partial, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = partial.stat().st_size
        partial.rename(self.store / f"blobs/sha256/{digest}")
        return digest, size

    def artifact(self, name, kind, blob):
        digest, size = blob
        self.dependencies[name] = {"version": "1", "url": f"local:{name}", "type": kind, "digest": f"sha256:{digest}", "size": size}

    def layer(self, name, **keys):
        (self.layers / name).mkdir()
        document = {"name": name, "version": "1", "description": f"Grows: {name}.", "os": [OS], **keys}
        (self.layers / name / "layer.json").write_text(json.dumps(document))

    def finish(self):
        document = {"version": "1", "kind": KIND, "os": {"name": OS, "arch": ARCH}, "dependencies": self.dependencies}
        self.manifest.write_text(json.dumps({"vmconfig": document}))


def files(maker, count):
    artifacts = {}
    for number, first in enumerate(range(0, count, PER_ARCHIVE)):
        name = f"files-{number}"
        part = range(first, min(count, first + PER_ARCHIVE))
        maker.artifact(name, "tar", maker.blob(lambda file, part=part: small(file, part)))
        artifacts[name] = {"type": "tar", "path": f"/srv/growth/{number}"}
    maker.layer(KIND, artifacts=artifacts)


def small(file, numbers):
    """An archive of one small file for each number."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number in numbers:
            content = f"{number:020}".encode() * 5
            member = tarfile.TarInfo(f"{number // PER_DIRECTORY}/{number}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            # It keeps all members.
            archive.members.clear()


def content(maker, count):
    blob = maker.blob(lambda file: compressible(file, GIB))
    artifacts = {}
    for number in range(count):
        name = f"content-{number:02}"
        maker.artifact(name, "binary", blob)
        artifacts[name] = {"type": "file", "path": f"/srv/growth/{name}", "mode": "0644"}
    maker.layer(KIND, artifacts=artifacts, directories={"/srv/growth": {"mode": "0755"}})


def compressible(file, size):
    """Bytes of which a quarter is random: every KiB its first quarter four times."""
    source = random.Random(size)
    for _ in range(size // CHUNK):
        noise = source.randbytes(CHUNK // 4)
        file.write(b"".join(noise[at:at + 256] * 4 for at in range(0, len(noise), 256)))


def layers(maker, count):
    names = [f"growth-{number:03}" for number in range(count)]
    for number, name in enumerate(names):
        source = random.Random(number)
        content = {f"{index:02}": source.randbytes(12_500) * 4 for index in range(20)}
        maker.artifact(name, "tar", maker.blob(lambda file, content=content: archive(file, content)))
        maker.layer(name, artifacts={name: {"type": "tar", "path": f"/srv/growth/{name}/artifact"}}, users={f"g{number:03}": {"id": 800 + number}},
                    directories={f"/srv/growth/{name}/state": {"mode": "0750", "owner": f"g{number:03}"}})
        own = maker.layers / name / f"files/srv/growth/{name}/own"
        own.mkdir(parents=True)
        for index in range(20):
            (own / f"{index:02}").write_bytes(source.randbytes(2000))
    maker.layer(KIND, requires=names)


def archive(file, content):
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name, text in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text))


AXES = {"files": files, "bytes": content, "layers": layers}


def main(folder, axis, value):
    maker = Maker(folder)
    AXES[axis](maker, int(value))
    maker.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
