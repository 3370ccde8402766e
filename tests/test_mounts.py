"""An image of a base whose root file system the kernel filled, baked without any artifact: what our reader and writer have made is what the kernel sees."""

import json
import re
import shutil

import pytest

from harness.mount import Mount
from harness.paths import BASE_IMAGE, ROOT
from harness.run import must
from harness.trees import describe_exactly, paths

# What the hygiene layer removes or writes on this base, and the unit for host keys of each bake; everything else must be equal.
ALLOWED = re.compile(
    r"/((usr/lib/systemd/system|etc/systemd/system/ssh\.service\.wants)/vmbake-ssh-host-keys\.service|etc/(os-release|machine-id|[a-z]+-|\.pwd\.lock)"
    r"|var/(lib/(cloud|dpkg/(status|diversions|statoverride)-old)|cache/apt/[a-z]+\.bin|log/[a-z./]+)|tmp|root/\.cache)")


@pytest.mark.needs("root")
def test_mounts(vmbake, work):
    base = must(BASE_IMAGE / "build.sh", "--kernel-filled").strip()
    # A kind of nothing but hygiene.
    shutil.copytree(ROOT / "layers/hygiene", work / "layers/hygiene")
    (work / "layers/plain").mkdir()
    (work / "layers/plain/layer.json").write_text('{"name": "plain", "version": "1", "description": "Nothing.", "os": ["debian-13"]}')
    manifest = {"vmconfig": {"version": "dev", "kind": "plain", "os": {"name": "debian-13", "arch": "amd64"}, "dependencies": {}}}
    (work / "manifest.json").write_text(json.dumps(manifest))
    must(vmbake, "bake", "plain", "--offline", "--base", base, "--layers", work / "layers", "--manifest", work / "manifest.json", "--store", work / "store",
         "--out", work, "--format", "raw")
    must("qemu-img", "convert", "-O", "raw", base, work / "base.raw")
    with Mount(work / "base.raw", work / "before") as before, Mount(work / "plain.debian-13.amd64.raw", work / "after") as after:
        old, new = listed(before.root), listed(after.root)
    differ = [f"{path}: {old.get(path)}, {new.get(path)}" for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path) and not ALLOWED.match(path)]
    assert len(old) > 10000 and not differ, "\n".join(differ[:20])


def listed(root):
    """By path, what the kernel sees."""
    return {path: describe_exactly(there) for path, there in paths(root).items() if not path.startswith("/lost+found")}
