"""The packages of a manifest, installed by dpkg into the base and compared with the image: those of the node, also on a base that has them in another revision,
and packages of the base that are replaced by those of another suite."""

import hashlib
import json
import os
import re
import shutil
import tarfile

import pytest

from harness import disk, dpkg
from harness.paths import BASE_IMAGE, ROOT
from harness.run import must, run

pytestmark = pytest.mark.needs("root")
UUID = "6b5d9a1e-20f3-4f6e-8d1b-7c9e0b3a5d42"
# How the version of a package becomes that of another revision.
EARLIER, LATER = "~0", "+1"
# Libraries, programs, conffiles, alternatives, files that moved: what of these is newer in the suite and fits to the base is
# upgraded. None has scripts that do more than the builder knows.
PACKAGES = """diffutils distro-info-data ethtool findutils grep iputils-ping libacl1 libbpf1 libcap2 libcap2-bin liblzma5 libmd0 libmnl0
    libnghttp2-14 libpsl5t64 libseccomp2 libxtables12 libyaml-0-2 mawk media-types nano ncurses-base netcat-openbsd runit-helper sed
    sensible-utils wget zlib1g""".split()
FEWEST = 8
SUITE = "sid"  # changes every day


def test_dpkg(rootfs, manifest, baked, store, tmp_path):
    dpkg.compare(rootfs, json.loads(manifest.read_text()), baked, store, tmp_path)


def rebuild(deb, suffix, names, folder):
    """The package in another revision; where it needs another one of `names` in exactly its version, it needs that revision."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    disk.call("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN/control"
    text = re.sub(r"^(Version: .*)$", rf"\g<1>{suffix}", control.read_text(), flags=re.MULTILINE)
    exact = rf"\b({'|'.join(map(re.escape, names))}) \(= ([^)]+)\)"
    control.write_text(re.sub(exact, rf"\g<1> (= \g<2>{suffix})", text))
    disk.call("dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, folder / f"{deb.name}.deb")


class Revisions:
    """Bakes on bases that have the packages of the node in another revision, as a base from before or after a point release has them."""

    def __init__(self, vmbake, examples, base, rootfs, manifest, store, name, work):
        self.vmbake, self.examples, self.rootfs, self.store, self.name, self.work = vmbake, examples, rootfs, store, name, work
        self.document = json.loads(manifest.read_text())
        for key in ("image", "boot"):
            self.document["vmconfig"]["os"].pop(key, None)
        self.unpinned = work / f"{name}.json"
        self.unpinned.write_text(json.dumps(self.document))
        entries = self.document["vmconfig"]["dependencies"].values()
        self.debs = [store / "blobs" / item["digest"].replace(":", "/") for item in entries if item["type"] == "deb"]
        must("qemu-img", "convert", "-O", "raw", base, work / "base.raw")

    def root(self, suffix):
        """The root file system with the packages in another revision, installed by its own dpkg."""
        names = [must("dpkg-deb", "-f", deb, "Package").strip() for deb in self.debs]
        folder, tree, tar = self.work / "debs", self.work / f"root{suffix}", self.work / f"root{suffix}.tar"
        folder.mkdir()
        for deb in self.debs:
            rebuild(deb, suffix, names, folder)
        shutil.rmtree(folder / "tree")
        dpkg.install(self.rootfs, tree, {path.name: path for path in folder.iterdir()})
        shutil.rmtree(folder)
        (tree / "usr/sbin/policy-rc.d").unlink()
        shutil.rmtree(tree / "debs")
        must("tar", "-C", tree, *dpkg.TAR, "--format=pax", "-cpf", tar, ".")
        shutil.rmtree(tree)
        return tar

    def bake(self, suffix):
        tar, image, out = self.root(suffix), self.work / f"base{suffix}.qcow2", self.work / f"out{suffix}"
        must(self.examples / "base-image", self.work / "base.raw", tar, UUID, image)
        done = run(self.vmbake, "bake", "node", "--manifest", self.unpinned, "--base", image, "--offline", "--store", self.store, "--format", "raw", "--out", out)
        return tar, out / f"{self.name}.raw", done


@pytest.fixture
def revisions(vmbake, examples, base, rootfs, manifest, store, name, work):
    return Revisions(vmbake, examples, base, rootfs, manifest, store, name, work)


@pytest.mark.slow
def test_earlier_revision(vmbake, revisions, store, work):
    tar, image, done = revisions.bake(EARLIER)
    assert done.returncode == 0 and len(revisions.debs) > 8, done
    dpkg.compare(tar, revisions.document, image, store, work)
    status = work / "status"
    status.write_text(must(vmbake, "cat", image, "/var/lib/dpkg/status"))
    assert not [line for line in status.read_text().split("\n") if line.startswith("Version: ") and line.endswith(EARLIER)]
    must("apt-get", "check", "-o", f"Dir::State::status={status}", "-o", "Debug::NoLocking=1")


@pytest.mark.slow
def test_later_revision(revisions):
    _, _, done = revisions.bake(LATER)
    assert done.returncode != 0 and "packages are never downgraded" in done.stdout + done.stderr, done


def stanzas(text):
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.split("\n") if ": " in line and not line.startswith(" "))
        if "Package" in fields:
            yield fields["Package"], fields


def compare(left, operator, right):
    return run("dpkg", "--compare-versions", left, operator, right).returncode == 0


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
    shown = run("apt-cache", "show", "--no-all-versions", *PACKAGES, env=apt)
    for name, new in stanzas(shown.stdout):
        old = installed.get(name)
        if old and compare(new["Version"], "gt", old["Version"]) and fits(new, installed):
            yield name, old["Version"], new["Version"]


@pytest.mark.slow
def test_upgrade_to_another_suite(vmbake, base, rootfs, work):
    apt = {**os.environ, "APT_CONFIG": must(BASE_IMAGE / "apt-root.sh", work / "apt", "amd64", SUITE).strip()}
    dependencies, artifacts = {}, {}
    store = work / "store"
    blobs = store / "blobs/sha256"
    blobs.mkdir(parents=True)
    (work / "debs").mkdir()
    for package, old, new in candidates(rootfs, apt):
        print(f"{package}: {old} -> {new}")
        must("apt-get", "-qq", "download", package, env=apt, cwd=work / "debs")
        [deb] = (work / "debs").glob(f"{package}_*.deb")
        content = deb.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        artifacts[package] = {"type": "deb"}
        dependencies[package] = {"version": new, "url": f"https://example.org/{deb.name}", "type": "deb", "digest": f"sha256:{digest}", "size": len(content)}
    assert len(artifacts) >= FEWEST, f"only {len(artifacts)} packages of {SUITE} fit to the base"
    for layer in "vm", "hygiene":
        shutil.copytree(ROOT / "layers" / layer, work / "layers" / layer)
    (work / "layers/newer").mkdir()
    (work / "layers/newer/layer.json").write_text(json.dumps({
        "name": "newer", "version": "1", "description": "Newer packages.", "os": ["debian-13"], "requires": ["vm"],
        "artifacts": artifacts, "upgrade": sorted(artifacts)}))
    manifest = work / "manifest.json"
    document = {"vmconfig": {"version": "dev", "kind": "newer", "os": {"name": "debian-13", "arch": "amd64"}, "dependencies": dependencies}}
    manifest.write_text(json.dumps(document))
    must(vmbake, "bake", "newer", "--manifest", manifest, "--layers", work / "layers", "--base", base, "--offline", "--store", store, "--format", "raw", "--out", work / "out")
    dpkg.compare(rootfs, document, work / "out/newer.debian-13.amd64.raw", store, work)
