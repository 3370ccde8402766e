"""The machines of a CI fleet, each a process with an empty store, behind which is one registry (Debian's docker-registry).

Each download happens only once, ten machines at once do not conflict, `plan` shows pending work, and garbage collection of the
registry removes nothing. The archive is a counting mirror on loopback.
"""

import json
import os
import shutil
import subprocess

from harness.archive_mirror import Mirror, lay_out
from harness.registry import Registry
from harness.report import case

SHARDS = 10
# The user's settings are ignored in all of these.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("VMBAKE_")}


class Fleet:
    """Machines that have one manifest in common."""

    def __init__(self, vmbake, base, manifest, folder, registry, mirror):
        self.vmbake, self.base, self.manifest, self.folder = vmbake, base, manifest, folder
        self.shared, self.mirror = ["--shared", f"oci://{registry.address}/vmbake/store"], mirror

    def start(self, store, command, *options, shared=True):
        here = [self.vmbake, command, "node", "--manifest", self.manifest, "--store", self.folder / store, *(self.shared if shared else []), *options]
        return subprocess.Popen(list(map(str, here)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CLEAN)

    def run(self, *arguments, **more):
        process = self.start(*arguments, **more)
        said, complaints = process.communicate()
        return process.returncode, said, complaints

    def fetch(self, store, *options):
        return self.run(store, "fetch", *self.mirror.options, *options)

    def plan(self, store):
        status, said, complaints = self.run(store, "plan", "--base", self.base, "--out", self.folder / "out", "--json")
        return json.loads(said) if status == 0 else complaints


def spares(fleet, files):
    status, _, said = fleet.fetch("first", "--shared-write")
    case("the first machine downloads everything once", status == 0 and len(fleet.mirror.asked) == files, f"{fleet.mirror.asked} {said}")
    fleet.mirror.asked.clear()
    status, _, said = fleet.fetch("second")
    case("the second one downloads nothing", status == 0 and not fleet.mirror.asked, f"{fleet.mirror.asked} {said}")
    shutil.rmtree(fleet.folder / "second")


def shards(fleet, files):
    """All at once, first with nothing in the registry."""
    for what, at_most in [("an empty registry", SHARDS * files), ("a full one", 0)]:
        running = [fleet.start(f"shard{number}", "fetch", "--shared-write", *fleet.mirror.options) for number in range(SHARDS)]
        said = [process.communicate()[1] for process in running]
        bad = [text for process, text in zip(running, said) if process.returncode or "shared store" in text]
        case(f"{SHARDS} machines at once with {what}: none fails, {len(fleet.mirror.asked)} downloads", not bad and len(fleet.mirror.asked) <= at_most, bad[:2])
        fleet.mirror.asked.clear()
        for number in range(SHARDS):
            shutil.rmtree(fleet.folder / f"shard{number}")


def planned(fleet, files):
    plan = fleet.plan("planned")
    image = plan["images"][0] if isinstance(plan, dict) else {}
    case("plan tells what an empty store lacks", image.get("state") == "bake" and image["fetch"]["files"] == files and image["fetch"]["bytes"] > 10 << 20, plan)
    matrix = ({"include": [{"kind": "node", "os": "debian-13", "arch": "amd64"}]}, [{"KIND": ["node"], "OS": ["debian-13"], "ARCH": ["amd64"]}])
    case("plan gives the matrix of GitHub and GitLab", (plan["github"], plan["gitlab"]) == matrix, plan)
    # The archive is gone: everything comes from the registry.
    fleet.mirror.close()
    status, _, said = fleet.fetch("planned")
    case("a machine bakes from the registry when the archive is gone", status == 0, said)
    case("plan tells that nothing is missing", fleet.plan("planned")["images"][0]["fetch"] == {"bytes": 0, "container_images": 0, "files": 0}, fleet.plan("planned"))
    out = fleet.folder / "out"
    bake = ["--base", fleet.base, "--out", out, "--offline"]
    status, _, said = fleet.run("planned", "bake", *bake)
    case("it bakes", status == 0, said)
    plan = fleet.plan("planned")
    case("plan tells that the image is unchanged", plan["images"][0]["state"] == "unchanged" and plan["github"] == {"include": []} and plan["gitlab"] == [], plan)
    alone = fleet.folder / "alone"
    status, _, said = fleet.run(fleet.folder.parent / "none", "bake", "--base", fleet.base, "--out", alone, "--offline")
    case("--offline does not ask the shared store", status == 1 and "is not in the store" in said, said)


def test_shared(vmbake, base, manifest, store, work):
    files = lay_out(manifest, store, work / "mirror")
    registry, mirror = Registry(work / "registry"), Mirror(work / "mirror")
    try:
        fleet = Fleet(vmbake, base, manifest, work / "machines", registry, mirror)
        shards(fleet, files)
        registry.stop()
        shutil.rmtree(work / "registry/data")
        registry.start()
        spares(fleet, files)
        ran = registry.collect_garbage()
        gone = [line for line in ran.stdout.splitlines() if "eligible for deletion" in line and not line.startswith("0 ")]
        case("garbage collection of the registry takes nothing away", ran.returncode == 0 and all(" 0 blobs" in line for line in gone), ran.stdout)
        planned(fleet, files)
    finally:
        registry.stop()
