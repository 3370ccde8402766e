#!/usr/bin/env python3
"""bake.py VMBAKE BASE [ARCH]: bakes knd, knc and examples/k3s on BASE, of that architecture (amd64), from release sites on loopback, into target/kinds.

An architecture whose images were baked already by the same vmbake, from the same sites and on the same base, is left as it is:
the boot tests and the comparison with an installed node (test_kinds.py) share the images.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from harness.paths import ROOT, TARGET
from harness.upstream.lab import Lab

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = TARGET / "kinds"
KINDS = ("knd", "knc")
# What layers of the reader's own ask of release sites.
EXAMPLES = ROOT / "examples"
ASKING = ("k3s",)
OS = "debian-13"
EPOCH = "1700000000"


class Failed(Exception):
    """vmbake's error."""


def target(kind, arch):
    return f"{kind}.{OS}.{arch}"


def image(kind, arch):
    return FOLDER / f"{target(kind, arch)}.raw"


def bake(vmbake, bases):
    """Bakes the kinds on each of `bases`, {architecture: disk image}; returns the architectures that were not baked before."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:
        # Another run may be baking the same.
        fcntl.flock(lock, fcntl.LOCK_EX)
        keys = {arch: _key(vmbake, base) for arch, base in bases.items()}
        stale = [arch for arch in bases if not _same(arch, keys[arch])]
        if stale:
            _sites(vmbake, {arch: bases[arch] for arch in stale})
            for arch in stale:
                (FOLDER / arch / "key").write_text(keys[arch])
        return stale


def baking(vmbake, kind, arch, base, *more):
    """Runs an offline bake; exit code and output."""
    work = FOLDER / arch
    command = [vmbake, "bake", kind, "--arch", arch, "--offline", "--manifest", work / f"manifests/{target(kind, arch)}.json", "--store",
               work / "store", "--no-builtin=trust", "--trust", work / "trust", "--base", base, "--format", "raw", "--force", *more]
    result = subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return result.returncode, result.stdout


def _sites(vmbake, bases):
    """Resolves and bakes with the sites up."""
    sites = FOLDER / "sites"
    shutil.rmtree(sites, ignore_errors=True)
    lab = Lab(vmbake, sites)
    try:
        for arch, base in bases.items():
            work = FOLDER / arch
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(lab.root / "trust", work / "trust")
            _good("update", lab.update(work / "manifests", work / "store", *KINDS, "--arch", arch))
            _good("update", lab.update(work / "manifests", work / "store", *ASKING, "--arch", arch, "--layers", EXAMPLES))
            # The sites' disk images boot, but they are no Debian: the bases take their places.
            for path in (work / "manifests").glob("*.json"):
                document = json.loads(path.read_text())
                del document["vmconfig"]["os"]["image"]
                path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
            for kind in KINDS:
                _good(f"bake of {target(kind, arch)}", baking(vmbake, kind, arch, base, "--out", FOLDER))
            for kind in ASKING:
                _good(f"bake of {target(kind, arch)}", baking(vmbake, kind, arch, base, "--out", FOLDER, "--layers", EXAMPLES))
    finally:
        lab.close()
        shutil.rmtree(sites)


def _good(what, result):
    code, said = result
    if code != 0:
        raise Failed(f"{what}: exit status {code}\n{said}")


def _same(arch, key):
    path = FOLDER / arch / "key"
    return path.exists() and path.read_text() == key and all(image(kind, arch).exists() for kind in (*KINDS, *ASKING))


def _key(vmbake, base):
    """A digest of all inputs of the images."""
    digest = hashlib.sha256()
    own = sorted(path for path in HERE.iterdir() if path.is_file())
    for path in [pathlib.Path(vmbake), *own, *(EXAMPLES / kind / "layer.json" for kind in ASKING)]:
        digest.update(path.read_bytes())
    status = os.stat(base)
    digest.update(f"{base} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def main(vmbake, base, arch="amd64"):
    try:
        bake(vmbake, {arch: base})
    except Failed as failed:
        print(f"bake.py: {failed}", file=sys.stderr)
        return 1
    for kind in (*KINDS, *ASKING):
        print(image(kind, arch))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
