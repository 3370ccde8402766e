"""Another user, with only the release, the program and the base, fills an empty store by `vmbake fetch` from a mirror on loopback, and bakes the release again:
in another folder, as (for root) another user, with one thread. Every output must be the same, and signed by a second key the release must satisfy a policy that
requires two builders."""

import json
import os
import re
import shutil

import pytest

from harness.archive_mirror import Mirror, lay_out
from harness.run import OTHER_USER, must, run

POLICY = {"format": 1, "builders": ["urn:vmbake:builder", "https://rebuild.example.net"], "keys": {"require": 2, "of": ["first.pub", "second.pub"]}}


@pytest.fixture
def copy(vmbake, base, release, name, work):
    """The release, signed by a first key, in a folder that another user reads and writes."""
    work.chmod(0o755)
    copy = work / "a release"
    copy.mkdir()
    for file in release.glob(f"{name}.*"):
        if not file.name.endswith(".sigstore.json"):
            must("cp", "--reflink=auto", file, copy)
    # The lists may name images of other kinds.
    for file in ("SHA256SUMS", "FSVERITYSUMS"):
        lines = (release / file).read_text().splitlines(keepends=True)
        (copy / file).write_text("".join(line for line in lines if f" {name}." in line))
    shutil.copy(vmbake, work / "vmbake")
    must("cp", "--reflink=auto", base, work / "base")
    (work / "base").chmod(0o644)
    for key in ("first", "second"):
        must(vmbake, "key", "generate", "--out", key, cwd=work)
    must(vmbake, "sign", copy, "--key", "first.key", cwd=work)
    (work / "other").mkdir(0o700)
    if OTHER_USER:
        must("chown", "-R", "65534:65534", work / "other", copy, work / "second.key")
    return copy


def test_rebuild(copy, name, store, work):
    environment = {**os.environ, "HOME": "/nonexistent", "TMPDIR": str(work / "other"), "TZ": "Asia/Kathmandu"}

    def vmbake(*arguments, check=must):
        return check(*OTHER_USER, work / "vmbake", *arguments, "--store", "other/store", cwd=work, env=environment)

    files = lay_out(copy / f"{name}.json", store, work / "mirror")
    mirror = Mirror(work / "mirror")
    try:
        vmbake("fetch", name.split(".")[0], "--manifest", copy / f"{name}.json", *mirror.options)
    finally:
        mirror.close()
    assert len(mirror.asked) == files and len(set(mirror.asked)) == files, mirror.asked

    said = vmbake("verify", "image", copy, "--key", "first.pub", "--base", "base", "--rebuild", "--jobs", "1", "--sign", "second.key", "--builder-id",
                  "https://rebuild.example.net")
    listed = sum(len((copy / file).read_text().splitlines()) for file in ("SHA256SUMS", "FSVERITYSUMS"))
    assert len(re.findall("rebuild .*identical$", said, re.MULTILINE)) == listed - 1, said
    assert len(re.findall("^signed ", said, re.MULTILINE)) == 3, said

    (work / "policy.json").write_text(json.dumps(POLICY))
    (work / "policy.json").chmod(0o644)
    vmbake("verify", "image", copy, "--policy", "policy.json")
    for bundle in copy.glob("*.rebuild.sigstore.json"):
        bundle.unlink()
    done = vmbake("verify", "image", copy, "--policy", "policy.json", check=run)
    assert done.returncode != 0 and "signed by 1 of the required 2 signers" in done.stdout, done
