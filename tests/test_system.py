"""A Debian system made of packages alone, compared with what mmdebstrap makes of the same packages as root, and judged by dpkg and apt in it."""

import fnmatch
import hashlib
import json
import pathlib
import tarfile
import tempfile

import pytest

from harness import paths
from harness.run import ENVIRONMENT, must, run

EPOCH = {**ENVIRONMENT, "SOURCE_DATE_EPOCH": "1757635200"}
FIELDS = ("type", "mode", "owner", "attributes", "content")
CODENAMES = {"debian-12": "bookworm", "debian-13": "trixie"}
CLOUD = json.loads((paths.ROOT / "layers/debian-cloud/layer.json").read_text())


class System:
    """A kind in a folder, with the systems that vmbake and mmdebstrap make of its packages."""

    def __init__(self, vmbake, folder, os, **keys):
        self.vmbake, self.folder, self.os, self.keys = vmbake, folder, os, keys
        self.options = ["--layers", folder / "layers", "--store", folder / "store"]
        self.kind("tested", **keys)
        must(vmbake, "update", "tested", "--os", os, "--arch", "amd64", "--manifests", folder, *self.options)
        self.name = f"tested.{os}.amd64"
        done = self.bake("out", "--format", "tar,oci", env=EPOCH)
        assert done.returncode == 0, done.stderr
        self.said = done.stderr
        self.archive = folder / f"out/{self.name}.tar"

    def kind(self, name, **keys):
        layer = self.folder / f"layers/{name}/layer.json"
        layer.parent.mkdir(parents=True)
        layer.write_text(json.dumps({"name": name, "version": "1", "description": "A system.", "os": [self.os], "requires": ["debian-minimal"], **keys}))

    def bake(self, out, *more, **process):
        return run(self.vmbake, "bake", "tested", "--os", self.os, "--arch", "amd64", "--manifest", self.folder / f"{self.name}.json", "--out", self.folder / out,
                   *self.options, *more, **process)

    def reference(self):
        """The archive of mmdebstrap, from the files that the manifest pins."""
        manifest = json.loads((self.folder / f"{self.name}.json").read_text())["vmconfig"]
        packages = self.folder / "packages"
        packages.mkdir()
        index = []
        for entry in manifest["dependencies"].values():
            algorithm, digest = entry["digest"].split(":")
            file = next((self.folder / "store").rglob(f"*{digest}*"))
            name = f"{digest}.deb"
            (packages / name).symlink_to(file)
            control = must("dpkg-deb", "-f", file)
            index.append(f"{control.rstrip()}\nFilename: ./{name}\nSize: {entry['size']}\n{algorithm.upper()}: {digest}\n")
        text = "\n".join(index).encode()
        (packages / "Packages").write_bytes(text)
        # mmdebstrap selects essential packages of a release by its codename.
        codename = CODENAMES[self.os]
        (packages / "Release").write_text(f"Codename: {codename}\nSHA256:\n {hashlib.sha256(text).hexdigest()} {len(text)} Packages\n")
        tar = self.folder / "reference.tar"
        # Its apt takes for required what the fields of packages call so.
        options = [f"--include={','.join(['apt', *self.keys.get('packages', [])])}", "--aptopt=Apt::Install-Recommends true"]
        # Since Debian 13, a package contains the links of a merged /usr.
        options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"] if self.os == "debian-12" else []
        must("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--architectures=amd64", *options, codename, tar, f"deb [trusted=yes] copy://{packages} ./", env=EPOCH)
        return tar


def made(vmbake, os, **keys):
    with tempfile.TemporaryDirectory(prefix="system.", dir="/var/tmp") as folder:
        yield System(vmbake, pathlib.Path(folder), os, **keys)


@pytest.fixture(scope="module", params=[pytest.param("debian-12", marks=pytest.mark.slow), "debian-13"])
def system(request, vmbake):
    """Debian's required packages, and apt."""
    yield from made(vmbake, request.param)


@pytest.fixture(scope="module", params=CODENAMES)
def cloud(request, vmbake):
    """The packages of Debian's cloud images, without the settings of the layer."""
    yield from made(vmbake, request.param, packages=CLOUD["packages"], recommends=CLOUD["recommends"])


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
    "/etc/apt/apt.conf.d/99mmdebstrap": "mmdebstrap writes its options",
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
    "/var/cache/debconf/tmp.ci": "apt configures packages before it installs them",
    "/var/cache/debconf/templates.dat-old": "the layer hygiene removes it",
    "/var/lib/dpkg/diversions-old": "the layer hygiene removes it",
    "/var/lib/dpkg/status-old": "the layer hygiene removes it",
    "/var/log/faillog": "the layer hygiene removes logs",
    "/var/cache/apt/archives/": "apt creates it when it runs",
    "/var/lib/apt/lists/": "apt creates it when it runs",
    "/var/lib/dpkg/arch": "mmdebstrap writes it for --architectures",
    "/var/lib/apt/extended_states": "mmdebstrap installs what essential packages need by dpkg, so that apt takes it for wanted",
    "/var/cache/debconf/config.dat": "mmdebstrap runs a script of libc6 before dpkg knows its architecture, and has no answers of tzdata",
}


# Further paths that differ in a system with services.
ALLOWED_IN_CLOUD = {
    "/etc/.resolv.conf.systemd-resolved.bak": "the copy of the host's that mmdebstrap made",
    "/etc/gshadow-": "the layer hygiene removes it",
    "/etc/shadow-": "the layer hygiene removes it",
    "/etc/runit/runsvdir/default/ssh": "mmdebstrap has a policy-rc.d, so that it is not linked",
    "/etc/ssh/ssh_host_*": "every machine generates its own keys",
    "*/vmbake-ssh-host-keys.service": "it generates them",
    "/etc/systemd/system/ssh.service.wants": "its link is the only one there on Debian 12",
    "/run/*": "a file system in memory",
    "*/__pycache__": "Python compiles modules when it runs",
    "*.pyc": "Python compiles modules when it runs",
    "/var/lib/sgml-base/supercatalog.old": "apt calls dpkg more than once",
    "/var/log/journal": "systemd-tmpfiles sets its access control list on every boot",
}
# Their lines come in the order in which packages are configured, as do ids: owners are compared by name.
ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow")
UNORDERED = (*ACCOUNTS, "/var/lib/dpkg/triggers/File")


def is_allowed(path):
    return any(path == allowed or (allowed.endswith("/") and path.startswith(allowed)) for allowed in ALLOWED)


def is_allowed_in_cloud(path):
    return is_allowed(path) or any(fnmatch.fnmatchcase(path, pattern) for pattern in ALLOWED_IN_CLOUD)


def by_name(path):
    """As `entries`, with the names of owners, and with lines without ids in place of the content of such files."""
    found = entries(path)
    with tarfile.open(path) as archive:
        files = {"/" + member.name.removeprefix(".").strip("/"): member for member in archive}
        lines = {name: archive.extractfile(files[name]).read().decode().splitlines() for name in UNORDERED}
    users, groups = ({line.split(":")[2]: line.split(":")[0] for line in lines[name]} for name in ACCOUNTS[:2])

    def without_ids(name, line):
        fields = line.split(":")
        if name == "/etc/passwd":
            fields[2:4] = ["", groups[fields[3]]]
        elif name == "/etc/group":
            fields[2] = ""
        return fields

    for entry in found.values():
        uid, gid = entry["owner"]
        entry["owner"] = (users.get(str(uid), uid), groups.get(str(gid), gid))
    for name in UNORDERED:
        found[name] = {**found[name], "content": sorted(without_ids(name, line) for line in lines[name])}
    return found


def differences(ours, theirs, is_meant):
    paths = sorted(path for path in ours.keys() | theirs.keys() if not is_meant(path))
    assert len(paths) > 5000
    return {path: (ours.get(path), theirs.get(path)) for path in paths if ours.get(path) != theirs.get(path)}


@pytest.mark.needs("root", "mmdebstrap")
def test_system_is_that_of_mmdebstrap(system):
    assert differences(entries(system.archive), entries(system.reference()), is_allowed) == {}


@pytest.mark.slow
@pytest.mark.needs("root", "mmdebstrap")
def test_cloud_system_is_that_of_mmdebstrap(cloud):
    assert differences(by_name(cloud.archive), by_name(cloud.reference()), is_allowed_in_cloud) == {}


def test_bytes_do_not_depend_on_the_number_of_threads(system):
    done = system.bake("again", "--format", "tar", "--jobs", "1", "--no-cache", env=EPOCH)
    assert done.returncode == 0, done.stderr
    assert (system.folder / f"again/{system.name}.tar").read_bytes() == system.archive.read_bytes()


def test_release_is_verified(system):
    must(system.vmbake, "verify", "image", system.archive.parent, "--rebuild", *system.options, env=EPOCH)


@pytest.mark.needs("root")
def test_dpkg_and_apt_find_no_fault(system, work):
    check(system, work)


@pytest.mark.slow
@pytest.mark.needs("root")
def test_dpkg_and_apt_find_no_fault_in_a_cloud_system(cloud, work):
    check(cloud, work)


@pytest.mark.slow
@pytest.mark.parametrize("os", CODENAMES)
def test_nothing_waits_in_the_layer_for_clouds(vmbake, os):
    for system in made(vmbake, os, requires=["debian-cloud"]):
        assert "deferred" not in system.said
        with tarfile.open(system.archive) as archive:
            sources = archive.extractfile("etc/apt/sources.list.d/debian.sources").read().decode()
        assert f"Suites: {CODENAMES[os]} {CODENAMES[os]}-updates {CODENAMES[os]}-backports\n" in sources


def check(system, work):
    must("tar", "--xattrs", "--xattrs-include=*", "-xpf", system.archive, "-C", work)
    for command in (["dpkg", "--audit"], ["dpkg", "--verify"]):
        assert must("chroot", work, *command) == "", command
    must("chroot", work, "apt-get", "check")
    assert "0 to remove" in must("chroot", work, "apt-get", "--simulate", "autoremove")


def test_what_waits_for_a_boot_is_refused(system):
    system.kind("waiting", packages=["ssl-cert"])
    done = run(system.vmbake, "update", "waiting", "--os", system.os, "--arch", "amd64", "--manifests", system.folder, *system.options)
    assert done.returncode == 1, done.stderr
    assert "package ssl-cert waits for the first boot, but there is no systemd to configure it then" in done.stderr


@pytest.mark.parametrize("wanted", [["--format", "raw"], ["--format", "tar", "--size", "8G"], ["--format", "tar", "--base", "/dev/null"]])
def test_what_needs_a_base_image_is_refused(system, wanted):
    done = system.bake("refused", *wanted)
    assert done.returncode == 1, done.stderr
    assert system.name in done.stderr
    assert "system is made of packages" in done.stderr
    assert not list((system.folder / "refused").glob(f"{system.name}*"))
