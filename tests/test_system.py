"""A Debian system made of packages alone, compared with what mmdebstrap makes of the same packages as root, and judged by dpkg and apt in it."""

import hashlib
import json
import tarfile

import pytest

from harness.run import ENVIRONMENT, must, run

NAME = "minimal.debian-13.amd64"
LAYER = {"name": "minimal", "version": "1", "description": "Debian's required packages.", "os": ["debian-13"], "requires": ["debian-minimal"]}
EPOCH = "1757635200"
FIELDS = ("type", "mode", "owner", "attributes", "content")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("system")


@pytest.fixture(scope="module")
def options(folder):
    layer = folder / "layers/minimal/layer.json"
    layer.parent.mkdir(parents=True)
    layer.write_text(json.dumps(LAYER))
    return ["--layers", folder / "layers", "--store", folder / "store"]


@pytest.fixture(scope="module")
def bake(vmbake, folder, options):
    must(vmbake, "update", "minimal", "--os", "debian-13", "--arch", "amd64", "--manifests", folder, *options)

    def bake(out, *more, **process):
        return run(vmbake, "bake", "minimal", "--os", "debian-13", "--arch", "amd64", "--manifest", folder / f"{NAME}.json", "--out", out, *options, *more, **process)

    return bake


@pytest.fixture(scope="module")
def archive(bake, folder):
    done = bake(folder / "out", "--format", "tar,oci", env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": EPOCH})
    assert done.returncode == 0, done.stderr
    return folder / f"out/{NAME}.tar"


@pytest.fixture(scope="module")
def reference(archive, folder):
    """The archive of mmdebstrap, from the files that the manifest pins."""
    manifest = json.loads((folder / f"{NAME}.json").read_text())["vmconfig"]
    packages = folder / "packages"
    packages.mkdir()
    index = []
    for entry in manifest["dependencies"].values():
        algorithm, digest = entry["digest"].split(":")
        file = next((folder / "store").rglob(f"*{digest}*"))
        name = f"{digest}.deb"
        (packages / name).symlink_to(file)
        control = must("dpkg-deb", "-f", file)
        index.append(f"{control.rstrip()}\nFilename: ./{name}\nSize: {entry['size']}\n{algorithm.upper()}: {digest}\n")
    text = "\n".join(index).encode()
    (packages / "Packages").write_bytes(text)
    # mmdebstrap selects essential packages of a release by its codename.
    (packages / "Release").write_text(f"Codename: trixie\nSHA256:\n {hashlib.sha256(text).hexdigest()} {len(text)} Packages\n")
    tar = folder / "reference.tar"
    must("env", f"SOURCE_DATE_EPOCH={EPOCH}", "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--architectures=amd64", "trixie", tar,
         f"deb [trusted=yes] copy://{packages} ./")
    return tar


def entries(path):
    """Type, mode, owner, extended attributes and content of each path."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = "/" + member.name.removeprefix(".").strip("/")
            attributes = sorted((key, value) for key, value in member.pax_headers.items() if key.startswith("SCHILY.xattr."))
            if member.islnk():
                found[name] = found["/" + member.linkname.removeprefix(".").strip("/")]
                continue
            stream = archive.extractfile(member) if member.isfile() else None
            content = hashlib.sha256(stream.read()).hexdigest() if stream else member.linkname
            mode = 0o777 if member.issym() else member.mode
            found[name] = dict(zip(FIELDS, (member.type, mode, (member.uid, member.gid), attributes, content), strict=True))
    return found


# Paths that differ, and why.
ALLOWED = {
    "/dev/": "a container and a machine have their own devices",
    "/etc/apt/sources.list": "mmdebstrap writes its own source",
    "/etc/fstab": "mmdebstrap writes a comment",
    "/etc/hostname": "mmdebstrap copies that of the host",
    "/etc/resolv.conf": "mmdebstrap copies that of the host",
    "/etc/machine-id": "every image gets an empty one",
    "/etc/os-release": "every image gets IMAGE_ID",
    "/etc/.pwd.lock": "the layer hygiene removes it",
    "/etc/group-": "the layer hygiene removes it",
    "/etc/passwd-": "the layer hygiene removes it",
    "/var/cache/debconf/config.dat-old": "the layer hygiene removes it",
    "/var/cache/debconf/templates.dat-old": "the layer hygiene removes it",
    "/var/lib/dpkg/diversions-old": "the layer hygiene removes it",
    "/var/lib/dpkg/status-old": "the layer hygiene removes it",
    "/var/cache/apt/archives/": "apt creates it when it runs",
    "/var/lib/apt/lists/": "apt creates it when it runs",
    "/var/lib/dpkg/arch": "mmdebstrap writes it for --architectures",
    "/var/lib/apt/extended_states": "mmdebstrap installs what essential packages need by dpkg, so that apt takes it for wanted",
    "/var/cache/debconf/config.dat": "mmdebstrap runs a script of libc6 before dpkg knows its architecture, and has no answers of tzdata",
}


def is_allowed(path):
    return any(path == allowed or (allowed.endswith("/") and path.startswith(allowed)) for allowed in ALLOWED)


@pytest.mark.needs("root", "mmdebstrap")
def test_system_is_that_of_mmdebstrap(archive, reference):
    ours, theirs = entries(archive), entries(reference)
    paths = sorted(path for path in ours.keys() | theirs.keys() if not is_allowed(path))
    assert len(paths) > 5000
    assert {path: (ours.get(path), theirs.get(path)) for path in paths if ours.get(path) != theirs.get(path)} == {}


def test_bytes_do_not_depend_on_the_number_of_threads(archive, bake, folder):
    done = bake(folder / "again", "--format", "tar", "--jobs", "1", "--no-cache", env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": EPOCH})
    assert done.returncode == 0, done.stderr
    assert (folder / f"again/{NAME}.tar").read_bytes() == archive.read_bytes()


def test_release_is_verified(archive, vmbake, options):
    must(vmbake, "verify", "image", archive.parent, "--rebuild", *options, env={**ENVIRONMENT, "SOURCE_DATE_EPOCH": EPOCH})


@pytest.mark.needs("root")
def test_dpkg_and_apt_find_no_fault(archive, work):
    must("tar", "--xattrs", "--xattrs-include=*", "-xpf", archive, "-C", work)
    for command in (["dpkg", "--audit"], ["dpkg", "--verify"]):
        assert must("chroot", work, *command) == "", command
    must("chroot", work, "apt-get", "check")
    assert "0 to remove" in must("chroot", work, "apt-get", "--simulate", "autoremove")


def test_what_waits_for_a_boot_is_refused(vmbake, folder, options):
    layer = folder / "layers/waiting/layer.json"
    layer.parent.mkdir()
    layer.write_text(json.dumps({**LAYER, "name": "waiting", "packages": ["ssl-cert"]}))
    done = run(vmbake, "update", "waiting", "--os", "debian-13", "--arch", "amd64", "--manifests", folder, *options)
    assert done.returncode == 1, done.stderr
    assert "package ssl-cert waits for the first boot, but there is no systemd to configure it then" in done.stderr


@pytest.mark.parametrize("wanted", [["--format", "raw"], ["--format", "tar", "--size", "8G"], ["--format", "tar", "--base", "/dev/null"]])
def test_what_needs_a_base_image_is_refused(bake, folder, wanted):
    done = bake(folder / "refused", *wanted)
    assert done.returncode == 1, done.stderr
    assert f"{NAME}" in done.stderr
    assert "system is made of packages" in done.stderr
    assert not list((folder / "refused").glob(f"{NAME}*"))
