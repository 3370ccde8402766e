"""What install.sh needs to install a node without vmbake."""

import json
import shutil

from harness.paths import ROOT
from harness.upstream import bake


def site(work, baked=bake.FOLDER / "amd64"):
    """The artifacts of the manifest in `baked`, a folder of bake.py, by name, for install.sh."""
    folder = work / "site"
    folder.mkdir()
    manifest = baked / f"manifests/{bake.target('knc', 'amd64')}.json"
    content = json.loads(manifest.read_text())["vmconfig"]
    for name, artifact in content["dependencies"].items():
        algorithm, hexadecimal = artifact["digest"].split(":")
        suffix = ".deb" if artifact["type"] == "deb" else ""
        shutil.copy(baked / f"store/blobs/{algorithm}/{hexadecimal}", folder / f"{name}{suffix}")
    shutil.copy(manifest, folder / "manifest.json")
    [image] = content["images"]
    (folder / "pause").write_text(image["image"])
    shutil.copy(ROOT / "target/firstboot/amd64/firstboot", folder / "firstboot")
    return folder
