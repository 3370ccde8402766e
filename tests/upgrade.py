#!/usr/bin/env python3
"""upgrade.py VMBAKE BASE ROOTFS_TAR [SUITE]: bakes an image in which real packages of the base are replaced by those of
another suite (default: sid), and compares it by dpkg.sh with the real dpkg. Needs root, and the Debian archive."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from harness.paths import BASE_IMAGE, ROOT
from harness.report import skip

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = ROOT / "layers"
# Libraries, programs, conffiles, alternatives, files that moved: what of these is newer in the suite and fits to the base is
# upgraded. None has scripts that do more than the builder knows.
PACKAGES = """diffutils distro-info-data ethtool findutils grep iputils-ping libacl1 libbpf1 libcap2 libcap2-bin liblzma5 libmd0 libmnl0
    libnghttp2-14 libpsl5t64 libseccomp2 libxtables12 libyaml-0-2 mawk media-types nano ncurses-base netcat-openbsd runit-helper sed
    sensible-utils wget zlib1g""".split()
FEWEST = 8


def stanzas(text):
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.split("\n") if ": " in line and not line.startswith(" "))
        if "Package" in fields:
            yield fields["Package"], fields


def compare(left, operator, right):
    return subprocess.run(["dpkg", "--compare-versions", left, operator, right]).returncode == 0


def met(relation, installed):
    """Whether the base alone satisfies one relation: a name, and perhaps a version."""
    name, _, version = relation.strip().partition(" ")
    found = installed.get(name.split(":")[0])
    return found is not None and (not version or compare(found["Version"], *version.strip("()").split()))


def fits(new, installed):
    groups = [group for field in ("Pre-Depends", "Depends") for group in new.get(field, "").split(",") if group.strip()]
    return all(any(met(relation, installed) for relation in group.split("|")) for group in groups)


def candidates(rootfs, apt):
    with tarfile.open(rootfs) as tar:
        installed = dict(stanzas(tar.extractfile("./var/lib/dpkg/status").read().decode()))
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", *PACKAGES], env=apt, stdout=subprocess.PIPE, text=True)
    for name, new in stanzas(shown.stdout):
        old = installed.get(name)
        if old and compare(new["Version"], "gt", old["Version"]) and fits(new, installed):
            yield name, old["Version"], new["Version"]


def main(vmbake, base, rootfs, suite="sid"):
    if os.getuid() != 0:
        sys.exit(skip("needs root"))
    vmbake = os.path.realpath(vmbake)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        conf = subprocess.check_output([BASE_IMAGE / "apt-root.sh", work / "apt", "amd64", suite], text=True).strip()
        apt = {**os.environ, "APT_CONFIG": conf}
        dependencies, artifacts = {}, {}
        store = work / "store"
        blobs = store / "blobs/sha256"
        blobs.mkdir(parents=True)
        (work / "debs").mkdir()
        for package, old, new in candidates(rootfs, apt):
            print(f"{package}: {old} -> {new}")
            subprocess.run(["apt-get", "-qq", "download", package], env=apt, cwd=work / "debs", check=True, stderr=subprocess.DEVNULL)
            [deb] = (work / "debs").glob(f"{package}_*.deb")
            content = deb.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            (blobs / digest).write_bytes(content)
            artifacts[package] = {"type": "deb"}
            dependencies[package] = {"version": new, "url": f"https://example.org/{deb.name}", "type": "deb",
                                     "digest": f"sha256:{digest}", "size": len(content)}
        if len(artifacts) < FEWEST:
            sys.exit(f"only {len(artifacts)} packages of {suite} fit to the base")
        for layer in "vm", "hygiene":
            shutil.copytree(LAYERS / layer, work / "layers" / layer)
        (work / "layers/newer").mkdir()
        (work / "layers/newer/layer.json").write_text(json.dumps({
            "name": "newer", "version": "1", "description": "Newer packages.", "os": ["debian-13"], "requires": ["vm"],
            "artifacts": artifacts, "upgrade": sorted(artifacts)}))
        manifest = work / "manifest.json"
        manifest.write_text(json.dumps({"vmconfig": {
            "version": "dev", "kind": "newer", "os": {"name": "debian-13", "arch": "amd64"}, "dependencies": dependencies}}))
        subprocess.run([vmbake, "bake", "newer", "--manifest", manifest, "--layers", work / "layers", "--base", base, "--offline",
                        "--store", store, "--format", "raw", "--out", work / "out"], check=True)
        image = work / "out/newer.debian-13.amd64.raw"
        subprocess.run([HERE / "dpkg.sh", rootfs, manifest, image, store], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
