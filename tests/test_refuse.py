"""Bakes from bad inputs. Each must fail with a clear message and exit code 1, without a panic, and leave nothing in its output directory."""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from harness import disk
from harness.paths import ROOT
from harness.run import must, run

# The root file system of the base of tools/base-image.
BASE_ROOT = 262144 * 512


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("refuse")


@pytest.fixture(scope="module")
def document(manifest):
    """A manifest that does not pin the base, so that a damaged base is met by its readers and not by its digest."""
    document = json.loads(manifest.read_text())
    del document["vmconfig"]["os"]["image"]
    return document


@pytest.fixture(scope="module")
def unpinned(document, folder):
    path = folder / "unpinned.json"
    path.write_text(json.dumps(document, indent=2, sort_keys=True))
    return path


@pytest.fixture(scope="module")
def raw(base, folder):
    must("qemu-img", "convert", "-O", "raw", base, folder / "base.raw")
    return folder / "base.raw"


@pytest.fixture
def refuse(vmbake, base, unpinned, store, tmp_path):
    """Bakes, and looks for an expression in the message."""
    def refuse(expected, *arguments, base=base, manifest=unpinned, store=store, out=tmp_path / "out"):
        done = run(vmbake, "bake", "node", "--offline", "--out", out, "--base", base, "--manifest", manifest, "--store", store, *arguments)
        said = done.stdout + done.stderr
        assert done.returncode == 1 and re.search(expected, said) and "panicked" not in said, done
        assert not out.exists() or not list(out.iterdir())
    return refuse


def test_recipe(tmp_path):
    """The base of a recipe is looked for before anything is compiled."""
    done = run("make", "--no-print-directory", "-C", ROOT, "-o", "firstboot", "base", f"BASE={tmp_path}/none")
    assert done.returncode != 0 and f"BASE={tmp_path}/none: no such file" in done.stdout + done.stderr, done


@pytest.mark.parametrize("percent", [1, 50, 95])
def test_truncated_qcow2(refuse, base, tmp_path, percent):
    path = tmp_path / "truncated.qcow2"
    shutil.copyfile(base, path)
    os.truncate(path, base.stat().st_size * percent // 100)
    refuse(r"\.qcow2", base=path)


def test_qcow2_with_a_damaged_header(refuse, base, tmp_path):
    path = tmp_path / "flipped.qcow2"
    shutil.copyfile(base, path)
    overwrite(path, 41, b"\xff")
    refuse("flipped.qcow2", base=path)


def test_qcow2_with_a_backing_file(refuse, base, tmp_path):
    path = tmp_path / "overlay.qcow2"
    must("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", path)
    refuse("backing file", base=path)


@pytest.mark.parametrize(("at", "expected"), [(1024 + 136, "superblock"), (4096, "group")], ids=["superblock", "group descriptor"])
def test_damaged_ext4(refuse, raw, tmp_path, at, expected):
    damaged = sparse_copy(raw, tmp_path / "flip.raw")
    overwrite(damaged, BASE_ROOT + at, (b" damaged \n" * 7)[:64])
    refuse(expected, base=damaged)


def test_disk_without_a_partition_table(refuse, raw, tmp_path):
    damaged = sparse_copy(raw, tmp_path / "flip.raw")
    overwrite(damaged, 0, bytes(34 * disk.SECTOR))
    overwrite(damaged, 3221225472 - 33 * disk.SECTOR, bytes(33 * disk.SECTOR))
    refuse("GPT|partition", base=damaged)


def test_base_that_is_not_the_pinned_one(refuse, raw, manifest):
    refuse("has digest|bytes", base=raw, manifest=manifest)


def test_empty_base(refuse, tmp_path):
    (tmp_path / "empty").touch()
    refuse("the file is empty", base=tmp_path / "empty")


def test_compressed_base(refuse, tmp_path):
    (tmp_path / "base.raw").touch()
    must("xz", "-0", tmp_path / "base.raw")
    refuse("hint: unpack it: xz -dk", base=tmp_path / "base.raw.xz")


def test_base_that_does_not_exist(refuse, tmp_path):
    refuse("No such file", base=tmp_path / "missing")


def test_size_too_small(refuse):
    refuse("needs|too small|bytes", "--size", "512M")


def test_wrong_architecture(refuse):
    refuse("is for node.debian-13.amd64", "--arch", "arm64")


def test_base_of_another_architecture(refuse, document, tmp_path):
    """Nothing proves these packages for arm64: they are pinned manually, so that the base is met."""
    document = json.loads(json.dumps(document))
    document["vmconfig"]["os"]["arch"] = "arm64"
    for pinned in document["vmconfig"]["dependencies"].values():
        del pinned["proof"]
    manifest, sources = tmp_path / "arm64.json", tmp_path / "none.json"
    manifest.write_text(json.dumps(document))
    sources.write_text('{"archives": {}, "systems": {}, "dependencies": []}')
    refuse("image for amd64, expected arm64", "--arch", "arm64", "--no-builtin=sources", "--sources", sources, manifest=manifest)


def test_manifest_with_an_unknown_key(refuse, unpinned, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text(unpinned.read_text().replace('"kind"', '"kinds"'))
    refuse("bad.json:[0-9]+:[0-9]+", manifest=bad)


def test_damaged_and_missing_artifact(refuse, document, store, tmp_path):
    shutil.copytree(store / "blobs", tmp_path / "store/blobs")
    # The largest artifact of the manifest: what else is in a store does not matter to a bake.
    largest = max(document["vmconfig"]["dependencies"].values(), key=lambda one: one["size"])
    blob = tmp_path / "store/blobs" / largest["digest"].replace(":", "/")
    blob.chmod(0o644)
    overwrite(blob, 1000, b"x")
    refuse("has digest", store=tmp_path / "store")
    blob.unlink()
    refuse("is not in the store", store=tmp_path / "store")


@pytest.mark.needs("root")
def test_full_disk(refuse, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    must("mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", small)
    try:
        refuse("hint: .*full", out=small)
    finally:
        must("umount", small)


def test_killed_while_writing(vmbake, base, unpinned, store, tmp_path):
    """A fast machine has written all of it in the longer times."""
    assert any(killed(delay, tmp_path / "out", vmbake, base, unpinned, store) for delay in (0.3, 0.1, 0.03, 0))
    assert not list((tmp_path / "out").iterdir())


def killed(delay, out, vmbake, base, manifest, store):
    """Kills a bake that long after it began to write; false if that was too late."""
    shutil.rmtree(out, ignore_errors=True)
    command = [vmbake, "bake", "node", "--offline", "--out", out, "--base", base, "--manifest", manifest, "--store", store]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as bake:
        for line in bake.stderr:
            if "authored" in line:
                break
        time.sleep(delay)
        bake.kill()
    return bake.returncode == -9


def overwrite(path, at, content):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


def sparse_copy(path, copy):
    must("cp", "--sparse=always", path, copy)
    return copy
