"""Bakes and builds under other conditions give the same bytes."""

import filecmp
import os
import shutil

from harness.paths import ROOT, TARGET
from harness.run import ENVIRONMENT, OTHER_USER, must


def same_files(one, other, count):
    names = [path.name for path in one.iterdir()]
    _, differ, missing = filecmp.cmpfiles(one, other, names, shallow=False)
    assert len(names) >= count and not differ and not missing, (differ, missing)


def test_reproducible_bake(vmbake, base, manifest, store, work):
    """Bakes twice, the second time with another thread count, folder, umask, time zone, locale and (as root) user, and compares every byte of the outputs, the
    record of inputs among them. The first store has decoded artifacts, the second cannot keep any."""
    work.chmod(0o755)
    one, other = work / "one", work / "two words"
    for folder in (one, other):
        folder.mkdir()
        folder.chmod(0o777)
    command = ("bake", "node", "--offline")
    must(vmbake, *command, "--base", base, "--manifest", manifest, "--store", store, "--out", one, "-j", "1", env={**ENVIRONMENT, "TZ": "UTC", "LC_ALL": "C"})
    # The other user must be able to read the inputs, wherever they are.
    shutil.copy(vmbake, work / "vmbake")
    shutil.copytree(store / "blobs", work / "store/blobs")
    must("cp", "--reflink=auto", base, work / "base")
    must("cp", manifest, work / "manifest.json")
    must("chmod", "-R", "a+rX", work / "base", work / "manifest.json", work / "store")
    must(*OTHER_USER, work / "vmbake", *command, "--base", work / "base", "--manifest", work / "manifest.json", "--store", work / "store", "--out", other / "out", "-j", "2",
         cwd=other, umask=0o077, env={**ENVIRONMENT, "HOME": "/nonexistent", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"})
    assert next(one.glob("*.inputs.json")).stat().st_size
    same_files(one, other / "out", 6)


def test_reproducible_firstboot(tmp_path):
    """Builds the first-boot program again, in another folder, with another home of cargo and flags that must not count."""
    built, cargo = tmp_path / "three words", tmp_path / "cargo"
    cargo.symlink_to(os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")))
    built.mkdir()
    for path in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        shutil.copy(ROOT / path, built)
    for path in (".cargo", "src"):
        shutil.copytree(ROOT / path, built / path, ignore=shutil.ignore_patterns("target"))
    (built / "tools").mkdir()
    shutil.copy(ROOT / "tools/firstboot.sh", built / "tools")
    must(built / "tools/firstboot.sh", env={**ENVIRONMENT, "CARGO_HOME": str(cargo), "RUSTFLAGS": "-Cdebuginfo=2"})
    for arch in ("amd64", "arm64"):
        assert filecmp.cmp(TARGET / f"firstboot/{arch}/firstboot", built / f"target/firstboot/{arch}/firstboot", shallow=False), arch
