"""Archives and deltas of a baked node, at an offline site."""

import hashlib
import json
import shutil
import sys

import pytest

from harness.paths import ROOT
from harness.report import case, note_skipped
from harness.run import run

NAME = "node.debian-13.amd64"
MARKER = "a line of the site\n"


def alone(*command, **options):
    """Output of a command on both streams, without network."""
    return finished("unshare", "-rn", *command, **options)


def finished(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, (command, done)
    return done


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_by_others(archive, work):
    """tar lists and unpacks it, and every blob has the digest that is its name."""
    listed = finished("tar", "-tvf", archive).stdout.splitlines()
    case("tar lists regular files without owner and time", all(line.startswith("-rw-r--r-- 0/0") and "1970-01-01" in line for line in listed), "\n".join(listed))
    layout = work / "layout"
    layout.mkdir()
    finished("tar", "-C", layout, "-xf", archive)
    wrong = [blob.name for blob in layout.glob("blobs/*/*") if hashlib.new(blob.parent.name, blob.read_bytes()).hexdigest() != blob.name]
    case("each blob has the digest that is its name", len(listed) > 10 and not wrong, wrong)
    index = json.loads((layout / "index.json").read_text())
    named = set()
    for entry in index["manifests"]:
        manifest = json.loads((layout / "blobs" / entry["digest"].replace(":", "/")).read_text())
        named |= {entry["digest"], manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])}
    there = {f"{blob.parent.name}:{blob.name}" for blob in layout.glob("blobs/*/*")}
    case("the index leads to every blob, and to no other", named == there, named ^ there)
    if oras := shutil.which("oras"):
        said = run(oras, "manifest", "fetch", "--oci-layout", f"{layout}@{index['manifests'][0]['digest']}")
        case("oras reads it as an image layout", said.returncode == 0, said.stderr)
    payload = sum(blob.stat().st_size for blob in layout.glob("blobs/*/*"))
    case("less than 2 % of it are not blobs", archive.stat().st_size <= payload * 1.02, (archive.stat().st_size, payload))
    shutil.rmtree(layout)


def bake_at_site(vmbake, archive, work, out):
    """The site imports the archive and bakes; returns the command that bakes again."""
    site = work / "site"
    site.mkdir()
    applied = alone(vmbake, "archive", "apply", archive, "--store", "store", "--out", "dist", "--inputs-to", "inputs", cwd=site)
    for end in ["raw", "qcow2"]:
        same = run("cmp", out / f"{NAME}.{end}", site / "dist" / f"{NAME}.{end}")
        case(f"the site bakes the same {end} without a network", same.returncode == 0, same.stdout)
    case("every proof was replayed", " verified  " in applied.stderr, applied.stderr)
    command = applied.stdout.strip().split(" ")
    (site / "inputs/layers/00/node/files/etc").mkdir(parents=True)
    (site / "inputs/layers/00/node/files/etc/site.conf").write_text(MARKER)
    alone(vmbake, *command[1:], "--out", "own", cwd=site)
    found = finished(vmbake, "cat", f"own/{NAME}.qcow2", "/etc/site.conf", cwd=site).stdout
    case("with a changed layer it bakes another image", found == MARKER, found)
    refused_unproven(vmbake, site, command, work)
    return site


def refused_unproven(vmbake, site, command, work):
    """Without the documents that the proofs rest on, a fresh store of the archive's other blobs is not enough."""
    alone(vmbake, "archive", "import", work / "node.tar", "--store", "unproven", cwd=site)
    evidence = json.loads((site / f"inputs/manifests/{NAME}.json").read_text())["vmconfig"]["evidence"]
    for blob in sorted(evidence):
        path = site / "unproven/blobs" / blob.replace(":", "/")
        path.rename(work / "kept")
        words = [word.replace("store/", "unproven/") if word.startswith("store/") else word for word in command[1:-1]]
        refused = run("unshare", "-rn", vmbake, *words, "unproven", "--out", "none", cwd=site)
        left = (site / "none" / f"{NAME}.raw").exists()
        case(f"without {evidence[blob]['url'].rsplit('/', 1)[-1]} it bakes nothing", refused.returncode == 1 and not left, refused.stderr)
        (work / "kept").rename(path)


def release_to_release(vmbake, site, out, work):
    """A delta from the first image to the site's own, by vmbake and by qemu-img."""
    for end in ["raw", "qcow2"]:
        old, new = out / f"{NAME}.{end}", site / "own" / f"{NAME}.{end}"
        delta = work / f"{end}.delta"
        finished(vmbake, "delta", old, new, "-o", delta, "--store", work / "none")
        made = work / f"made.{end}"
        alone(vmbake, "apply", delta, "--base", old, "-o", made)
        case(f"a delta of {end} leads to the same file", run("cmp", made, new).returncode == 0)
        if shutil.which("qemu-img"):
            (work / old.name).symlink_to(old)
            finished("qemu-img", "check", "-f", "qcow2", delta)
            finished("qemu-img", "convert", "-O", "raw", delta, work / "by-qemu.raw", cwd=work)
            same = run("cmp", work / "by-qemu.raw", site / "own" / f"{NAME}.raw")
            case(f"qemu-img alone makes the same disk of it, from {end}", same.returncode == 0, same.stdout)
            (work / "by-qemu.raw").unlink()
        else:
            note_skipped("archive: qemu-img is not installed")
        made.unlink()


def test_archive(vmbake, base, manifest, store, release, work):
    if run("unshare", "-rn", "true").returncode != 0:
        pytest.skip("this user cannot make a namespace without a network")
    unreachable = "import errno, socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); sys.exit(s.connect_ex(('192.0.2.1', 9)) != errno.ENETUNREACH)"
    alone(sys.executable, "-c", unreachable)
    archive = work / "node.tar"
    args = ["node", "--manifest", manifest, "--sources", ROOT / "manifests/sources.json", "--store", store, "--base", base]
    finished(vmbake, "archive", "create", *args, "-o", archive)
    finished(vmbake, "archive", "create", *args, "-o", work / "again.tar", "--jobs", "1")
    case("an archive is the same each time", digest(archive) == digest(work / "again.tar"))
    (work / "again.tar").unlink()
    alone(vmbake, "archive", "verify", archive)
    read_by_others(archive, work)
    site = bake_at_site(vmbake, archive, work, release)
    release_to_release(vmbake, site, release, work)
    finished(vmbake, "archive", "create", release / f"{NAME}.qcow2", "--images", "--store", store, "--split", "100M", "-o", work / "image.tar")
    alone(vmbake, "archive", "apply", work / "image.tar", "--out", work / "images", "--store", work / "unused")
    lines = (work / "images/SHA256SUMS").read_text().splitlines()
    checked = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=work / "images")
    case("an image in parts is extracted with its documents", checked.returncode == 0 and len(lines) > 5, checked.stdout + checked.stderr)
