"""Packages with maintainer scripts as vendors of agents and servers write them: each image is compared with what the real dpkg installs. vendors.txtar has their
scripts and files; the packages are built of it, and served by a signed archive on loopback, next to the Debian archive. Needs root, gpg, and the Debian archive.

vendors.txtar is an archive of text: a line `-- PACKAGE/PATH --` begins a file. PACKAGE/DEBIAN/... are control files, and a PATH with a slash at its end is a
directory. The content `@program@` stands for a compiled program that does nothing. PACKAGE/EXPECT has the state that a comparison has to give
(default: ok), and texts that its report must have, one in a line."""

import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile

import pytest

from harness import web
from harness.packages import Bench
from harness.paths import TESTS

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "gpg")]
HOST = "packages.vendors.example"
CONTROL = "Package: {}\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: Vendor <packages@vendors.example>\nDescription: Test package\n"


def members():
    """Package -> path -> content."""
    found = {}
    parts = re.split(r"(?m)^-- (\S+) --$\n", (TESTS / "vendors.txtar").read_text())[1:]
    for name, content in zip(parts[::2], parts[1::2], strict=True):
        package, _, inner = name.partition("/")
        found.setdefault(package, {})[inner] = content
    return found


def build(package, files, program, folder):
    """Builds the package with dpkg-deb."""
    root = folder / "built" / package
    (root / "DEBIAN").mkdir(parents=True)
    control = CONTROL.format(package) + files.get("DEBIAN/fields", "")
    (root / "DEBIAN/control").write_text(control)
    for name, content in files.items():
        if name in ("EXPECT", "DEBIAN/fields"):
            continue
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(program if content == "@program@\n" else content.encode())
        path.chmod(0o755 if content.startswith(("#!", "@program@")) else 0o644)
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    deb = folder / f"{package}_1.0-1_amd64.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", root, deb], check=True, stdout=subprocess.DEVNULL)
    return control, deb


def digests(path):
    content = path.read_bytes()
    return hashlib.sha256(content).hexdigest(), len(content)


def archive(packages, program, folder):
    """A signed archive of the packages; its key is in folder/trust."""
    site = folder / "site" / HOST
    index = site / "dists/stable/main/binary-amd64/Packages"
    index.parent.mkdir(parents=True)
    (site / "pool").mkdir()
    stanzas = []
    for name, files in packages.items():
        control, deb = build(name, files, program, folder)
        (site / "pool" / deb.name).write_bytes(deb.read_bytes())
        digest, size = digests(deb)
        stanzas.append(f"{control}Filename: pool/{deb.name}\nSize: {size}\nSHA256: {digest}\n")
    index.write_text("\n".join(stanzas))
    (index.parent / "Packages.gz").write_bytes(gzip.compress(index.read_bytes(), mtime=0))
    listed = "".join(" {} {} {}\n".format(*digests(path), path.relative_to(site / "dists/stable")) for path in sorted(index.parent.iterdir()))
    now = subprocess.check_output(["date", "-u", "-R"], text=True, env={**os.environ, "LC_ALL": "C"}).strip().replace("+0000", "UTC")
    release = f"Origin: Vendors\nSuite: stable\nCodename: stable\nDate: {now}\nArchitectures: amd64\nComponents: main\nSHA256:\n{listed}"
    home = folder / "gnupg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
    subprocess.run([*gpg, "--quick-gen-key", "vendors@vendors.example", "ed25519", "sign", "never"], check=True, stderr=subprocess.DEVNULL)
    signed = subprocess.run([*gpg, "--clearsign"], input=release.encode(), stdout=subprocess.PIPE, check=True).stdout
    (site / "dists/stable/InRelease").write_bytes(signed)
    (folder / "trust").mkdir()
    (folder / "trust/vendors.asc").write_bytes(subprocess.check_output([*gpg, "--armor", "--export"]))
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)
    entry = {"url": f"https://{HOST}", "suite": "stable", "component": "main", "keyring": "vendors.asc"}
    (folder / "sources.json").write_text(json.dumps({"archives": {"vendors": entry}}))
    return folder / "site"


class Vendors(Bench):
    """A bench whose packages are those of the archive of vendors."""

    def __init__(self, vmbake, base, rootfs, work, port):
        super().__init__(vmbake, base, rootfs, work)
        self.layer = {"archive": "vendors"}
        self.options = ["--sources", work / "sources.json", "--trust", work / "trust", "--mirror", f"https://{HOST}/=http://127.0.0.1:{port}/{HOST}/"]


PACKAGES = members()


@pytest.fixture(scope="module")
def bench(vmbake, base, rootfs):
    with tarfile.open(rootfs) as tar:
        program = tar.extractfile("./usr/bin/true").read()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        site = archive(PACKAGES, program, work)
        with web.files(site) as server:
            yield Vendors(vmbake, base, rootfs, work, server.server_port)


@pytest.mark.parametrize("package", PACKAGES)
def test_vendor(bench, package):
    result = bench.judge(package)
    said = "\n".join(result.get("said", []))
    state, *texts = PACKAGES[package].get("EXPECT", "ok\n").splitlines()
    assert result["state"] == state and all(text in said for text in texts), json.dumps(result, indent=1)
