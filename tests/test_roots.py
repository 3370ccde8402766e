"""Images based on a root file system without a disk: an archive, a container image of a registry, and packages alone. GNU tar, dpkg and umoci make what
they are compared with."""

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import tarfile
import tempfile

import pytest
from test_system import entries

from harness.registry import Registry
from harness.run import ENVIRONMENT, must, run

TARGET = "debian-13.amd64"
EPOCH = {**ENVIRONMENT, "SOURCE_DATE_EPOCH": "1757635200"}
# As in Debian's slim container images.
DOCKER = """path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude /usr/share/locale/*
"""
# What every bake writes or empties.
OWN = ("/etc/os-release", "/usr/lib/os-release", "/etc/machine-id", "/opt/podplane", "/usr/share/vmbake")
EXTRACT = ("tar", "--xattrs", "--xattrs-include=*", "--numeric-owner", "-xpf")
CREATE = ("tar", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--sort=name")

pytestmark = pytest.mark.needs("root", "skopeo", "umoci", "docker-registry")


class Lab:
    """A folder with kinds, their manifests and images."""

    def __init__(self, folder, vmbake):
        self.folder, self.vmbake = folder, vmbake
        self.options = ["--os", "debian-13", "--arch", "amd64", "--layers", folder / "layers", "--store", folder / "store"]

    def kind(self, name, **keys):
        layer = self.folder / f"layers/{name}/layer.json"
        layer.parent.mkdir(parents=True)
        layer.write_text(json.dumps({"name": name, "version": "1", "description": "A test.", "os": ["debian-13"], **keys}))

    def update(self, kind, *more):
        return run(self.vmbake, "update", kind, "--manifests", self.folder, *self.options, *more)

    def bake(self, kind, *more):
        formats = [] if "--format" in more else ["--format", "tar"]
        return run(self.vmbake, "bake", kind, "--manifest", self.manifest(kind), "--out", self.folder / "out", *self.options, *formats, *more, env=EPOCH)

    def baked(self, kind, *more):
        done = self.bake(kind, *more)
        assert done.returncode == 0, done.stderr
        return self.folder / f"out/{kind}.{TARGET}.tar"

    def made(self, kind, *more):
        done = self.update(kind, *more)
        assert done.returncode == 0, done.stderr
        return self.baked(kind)

    def manifest(self, kind):
        return self.folder / f"{kind}.{TARGET}.json"

    def os(self, kind):
        return json.loads(self.manifest(kind).read_text())["vmconfig"]["os"]


@pytest.fixture(scope="module")
def lab(vmbake):
    with tempfile.TemporaryDirectory(prefix="roots.", dir="/var/tmp") as folder:
        lab = Lab(pathlib.Path(folder), vmbake)
        for name in ("system", "plain", "again", "pulled"):
            lab.kind(name)
        for name in ("editor", "container"):
            lab.kind(name, packages=["nano"])
        yield lab


@pytest.fixture(scope="module")
def system(lab):
    """The archive of a system that is made of packages, because `update` says so."""
    return lab.made("system", "--base", "packages")


@pytest.fixture(scope="module")
def tree(lab, system):
    """The same in a directory, with the configuration of a container image."""
    tree = lab.folder / "tree"
    tree.mkdir()
    must(*EXTRACT, system, "-C", tree)
    (tree / "etc/dpkg/dpkg.cfg.d/docker").write_text(DOCKER)
    return tree


@pytest.fixture(scope="module")
def archive(lab, tree):
    """The archive that GNU tar makes of it."""
    path = lab.folder / "rootfs.tar.gz"
    must(*CREATE, "-C", tree, "-czf", path, ".")
    return path


@pytest.fixture(scope="module")
def registry(lab):
    with Registry(lab.folder / "registry") as registry:
        yield registry


@pytest.fixture(scope="module")
def layout(lab, archive):
    """An image whose second layer hides files of the first one and replaces others."""
    def member(name, content=b"", kind=tarfile.REGTYPE, link=""):
        info = tarfile.TarInfo(name)
        info.size, info.type, info.linkname, info.mtime, info.mode = len(content), kind, link, 1, 0o755 if kind == tarfile.DIRTYPE else 0o640
        return info, content

    upper = io.BytesIO()
    with tarfile.open(fileobj=upper, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in (
            member("usr/share/perl5/new", b"2"),
            member("usr/share/perl5/.wh..wh..opq"),
            member("usr/share/doc/.wh.adduser"),
            member("etc/.wh.motd"),
            member("etc/.wh.nothing"),
            member("etc/issue", b"another\n"),
            member("srv", b"no directory"),
            member("usr/games", kind=tarfile.SYMTYPE, link="share"),
            member("mnt/x", b"x"),
            member("mnt/y", kind=tarfile.LNKTYPE, link="mnt/x"),
        ):
            tar.addfile(info, io.BytesIO(content))
    lower = gzip.decompress(archive.read_bytes())
    folder = lab.folder / "layout"
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def diff(content):
        return f"sha256:{hashlib.sha256(content).hexdigest()}"

    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [diff(lower), diff(upper.getvalue())]}})
    layers = [blob(archive.read_bytes(), "layer.v1.tar+gzip"), blob(upper.getvalue(), "layer.v1.tar")]
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": blob(config.encode(), "config.v1+json"), "layers": layers}
    entry = {**blob(json.dumps(manifest).encode(), "manifest.v1+json"), "platform": {"os": "linux", "architecture": "amd64"}}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    top = {**blob(json.dumps(index).encode(), "index.v1+json"), "annotations": {"org.opencontainers.image.ref.name": "1"}}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [top]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder, entry["digest"]


@pytest.fixture(scope="module")
def reference(lab, registry, layout):
    address = f"{registry.address}/test/debian"
    must("skopeo", "copy", "--all", "--preserve-digests", "--dest-tls-verify=false", f"oci:{layout[0]}:1", f"docker://{address}:1")
    return f"oci://{address}:1"


def same(ours, theirs, *allowed):
    ours, theirs = entries(ours), entries(theirs)
    assert len(theirs) > 5000
    paths = [path for path in sorted(ours.keys() | theirs.keys()) if not any(path == one or path.startswith(f"{one}/") for one in (*OWN, *allowed))]
    assert {path: (ours.get(path), theirs.get(path)) for path in paths if ours.get(path) != theirs.get(path)} == {}


def packed(folder, tree):
    path = folder / "expected.tar"
    must(*CREATE, "--format=pax", "-C", tree, "-cf", path, ".")
    return path


def test_kind_is_made_of_packages(lab, system):
    assert lab.os("system") == {"arch": "amd64", "base": "packages", "name": "debian-13"}
    before = lab.manifest("system").read_bytes()
    assert lab.update("system").returncode == 0
    assert lab.manifest("system").read_bytes() == before
    done = lab.bake("system", "--format", "raw")
    assert done.returncode == 1 and "its system is made of packages" in done.stderr, done.stderr


def test_archive_stays_as_it_is(lab, archive, work):
    baked = lab.made("plain", "--base", archive)
    [size, digest] = [archive.stat().st_size, hashlib.sha256(archive.read_bytes()).hexdigest()]
    image = {"digest": f"sha256:{digest}", "proof": {"type": "local"}, "size": size, "type": "tar", "url": "local:rootfs.tar.gz", "version": "local"}
    assert lab.os("plain") == {"arch": "amd64", "image": image, "name": "debian-13"}
    plain = work / "plain.tar"
    plain.write_bytes(gzip.decompress(archive.read_bytes()))
    same(baked, plain)
    moved = archive.rename(work / "moved")
    assert lab.baked("plain", "--force", "--no-cache", "--base", moved) == baked
    moved.rename(archive)
    for wanted in (["--format", "raw"], ["--size", "8G", "--force"]):
        done = lab.bake("plain", *wanted)
        assert done.returncode == 1 and "its base is an archive" in done.stderr, done.stderr


def test_own_archive_is_a_base(lab, system):
    same(lab.made("again", "--base", system), system)


def test_package_is_installed_as_by_dpkg(lab, archive, work):
    baked = lab.made("editor", "--base", archive)
    copy = work / "chroot"
    copy.mkdir()
    must(*EXTRACT, archive, "-C", copy)
    manifest = json.loads(lab.manifest("editor").read_text())["vmconfig"]
    for number, entry in enumerate(manifest["dependencies"].values()):
        file = next((lab.folder / "store").rglob(entry["digest"].split(":")[1]))
        shutil.copy(file, copy / f"tmp/{number}.deb")
    must("chroot", copy, "sh", "-c", "dpkg -i /tmp/*.deb && rm /tmp/*.deb")
    same(baked, packed(work, copy), "/var/log", "/var/lib/apt/extended_states", "/var/lib/dpkg/status-old", "/var/cache/ldconfig", "/etc/ld.so.cache")
    names = entries(baked)
    assert "/usr/share/doc/nano/copyright" in names
    assert "/usr/share/man/man1/nano.1.gz" not in names


def test_container_image_is_unpacked_as_by_umoci(lab, reference, registry, layout, work):
    baked = lab.made("pulled", "--base", reference)
    image = lab.os("pulled")["image"]
    assert (image["type"], image["url"], image["version"], image["digest"]) == ("oci", reference, "1", layout[1])
    must("umoci", "unpack", "--image", f"{layout[0]}:1", work / "bundle")
    same(baked, packed(work, work / "bundle/rootfs"))
    registry.stop()
    lab.baked("pulled", "--offline", "--no-cache", "--force")
    before = lab.manifest("pulled").read_bytes()
    assert lab.update("pulled").returncode == 0
    assert lab.manifest("pulled").read_bytes() == before
    registry.start()


def test_packages_are_added_to_a_container_image(lab, reference):
    baked = lab.made("container", "--base", f"{reference}")
    assert {"/usr/bin/nano", "/mnt/y"} <= entries(baked).keys()
    done = lab.bake("container", "--format", "oci")
    assert done.returncode == 0, done.stderr
    done = lab.update("container", "--base", "packages")
    assert done.returncode == 0, done.stderr
    assert lab.os("container")["base"] == "packages"


@pytest.mark.parametrize(("change", "expected"), [
    (lambda tree: (tree / "etc/os-release").write_text("ID=fedora\nVERSION_ID=42\n"), "image of fedora 42, expected debian-13"),
    (lambda tree: [(tree / path / "os-release").unlink() for path in ("etc", "usr/lib")], "not a root file system of Debian: /etc/os-release does not exist"),
    (lambda tree: (tree / "var/lib/dpkg/status").unlink(), "not a root file system of Debian: /var/lib/dpkg/status does not exist"),
    (lambda tree: (tree / "var/lib/dpkg/status").write_text("Package: dpkg\nArchitecture: arm64\n"), "image for arm64, expected amd64"),
])
def test_other_roots_are_refused(lab, tree, work, change, expected):
    for path in ("etc/os-release", "usr/lib/os-release", "var/lib/dpkg/status"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        must("cp", "-a", tree / path, work / path)
    change(work)
    must("tar", "-C", work, "-cf", lab.folder / "other.tar", ".")
    lab.manifest("refused").unlink(missing_ok=True)
    if not (lab.folder / "layers/refused").exists():
        lab.kind("refused")
    done = lab.update("refused", "--base", lab.folder / "other.tar")
    assert done.returncode == 1, done.stderr
    assert expected in done.stderr


def test_other_digest_is_refused(lab, reference):
    done = lab.update("pulled", "--base", f"{reference}@sha256:{'0' * 64}")
    assert done.returncode == 1, done.stderr
