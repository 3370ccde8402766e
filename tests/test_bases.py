"""A node is baked on bases with various layouts, and each is checked with other tools.

harness/variants.py makes the bases. Each is pinned as `make bake BASE=...` does it, and baked twice and once more for a larger disk. What is not the
root's must be carried over as it was, and of the root what no layer changes. The bases that take minutes are slow tests.
"""

import filecmp
import json
import os
import pathlib
import re
import shutil
import stat
import tempfile

import pytest

from harness import disk, variants
from harness.paths import ROOT
from harness.report import case
from harness.run import run

NAME = "node.debian-13.amd64"
# Paths of any base that the layers of a node change or remove; all others are kept.
CHANGED = re.compile(
    r"/etc/(group|gshadow|passwd|shadow|subuid|subgid|ld\.so\.cache|os-release)-?|/etc/\.pwd\.lock|/etc/machine-id|/opt|/opt/podplane/share/.*|/usr/lib/os-release"
    r"|/var/cache/(apt/\w+\.bin|debconf/.*|ldconfig/.*)|/var/lib/(cloud|dpkg)/.*|/var/log/.*|/(var/)?tmp/.*")


class Bench:
    """Bakes in folders of their own, from stores that have the blobs of the manifest and nothing else."""

    def __init__(self, vmbake, manifest, store, folder):
        self.vmbake, self.folder = vmbake, folder
        self.blobs = folder / "blobs"
        document = json.loads(manifest.read_text())
        artifacts = [pinned["digest"] for pinned in document["vmconfig"]["dependencies"].values()]
        for name in [*artifacts, *document["vmconfig"].get("evidence", {})]:
            algorithm, digest = name.split(":")
            (self.blobs / algorithm).mkdir(parents=True, exist_ok=True)
            shutil.copy(store / "blobs" / algorithm / digest, self.blobs / algorithm)
        # Each base is pinned by itself.
        for key in ("image", "boot"):
            document["vmconfig"]["os"].pop(key, None)
        self.unpinned = folder / "unpinned"
        self.unpinned.mkdir()
        (self.unpinned / f"{NAME}.json").write_text(json.dumps(document))

    def plain(self, lab):
        """The bake of the base as it is, without the digest of its file: any other file with that disk must give the same."""
        out = self.folder / "plain"
        if not lab.baked.exists():
            code, said = self.bake(lab.base, self.unpinned, out, formats="raw")
            if code != 0:
                raise RuntimeError(said)
            (out / f"{NAME}.raw").rename(lab.baked)

    def pin(self, base, folder):
        """Exit code and output of `vmbake update` for this base."""
        shutil.copytree(self.unpinned, folder)
        return self.tell("update", "node", "--os", "debian-13", "--arch", "amd64", "--sources", ROOT / "manifests/sources.json", "--trust", ROOT / "trust",
                         "--manifests", folder, "--image", base, store=folder / "store")

    def bake(self, base, manifests, out, *options, formats="raw,qcow2"):
        shutil.copytree(self.blobs, out.with_suffix(".store") / "blobs")
        # The archive may have changed since the store was filled: what was pinned after that comes along.
        if (pinned := manifests / "store/blobs").exists():
            shutil.copytree(pinned, out.with_suffix(".store") / "blobs", dirs_exist_ok=True)
        try:
            return self.tell("bake", "node", "--offline", "--manifests", manifests, "--base", base, "--out", out, "--format", formats, *options,
                             store=out.with_suffix(".store"))
        finally:
            shutil.rmtree(out.with_suffix(".store"))

    def tell(self, *arguments, store=None):
        """Exit code and output of vmbake."""
        done = run(self.vmbake, *arguments, *(["--store", store] if store else []), errors="replace")
        return done.returncode, done.stdout + done.stderr

    def ask(self, *arguments):
        """vmbake's JSON output, or None with the reason."""
        done = run(self.vmbake, *arguments, "--json")
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr)


class Judge:
    """One base and its bakes."""

    def __init__(self, name, variant, lab, bench):
        self.name, self.variant, self.lab, self.bench = name, variant, lab, bench
        self.folder = lab.folder / "judged"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def go(self):
        """Creates the base, bakes it and checks the result."""
        if self.variant.like or self.name == "baked":
            self.bench.plain(self.lab)
        self.base = self.variant.make(self.lab, self.folder / f"base.{self.variant.suffix}")
        self.report, said = self.bench.ask("inspect", self.base)
        case("inspect reads it", self.report is not None, said)
        if self.variant.journal:
            self.interrupted()
            return
        code, said = self.bench.pin(self.base, self.folder / "manifests")
        case("is pinned", code == 0, said)
        if self.variant.like:
            self.contained()
        elif code == 0 and self.baked():
            self.judged()

    def raw(self, image):
        path = self.folder / "raw"
        path.unlink(missing_ok=True)
        if image.suffix == ".raw":
            return image
        disk.call("qemu-img", "convert", "-O", "raw", image, path)
        return path

    def contained(self):
        """The bytes of the image are those of the bake of the same disk in another container."""
        out = self.folder / "out"
        code, said = self.bench.bake(self.base, self.bench.unpinned, out, formats="raw")
        case("bakes", code == 0, said)
        if code == 0:
            image = out / f"{NAME}.raw"
            lengths = [path.stat().st_size for path in (image, self.lab.baked)]
            case("bakes to the same bytes as the base", lengths[0] == lengths[1] and disk.same(image, 0, self.lab.baked, 0, lengths[0]))

    def baked(self):
        out = self.folder / "out"
        code, said = self.bench.bake(self.base, self.folder / "manifests", out)
        case("bakes", code == 0, said)
        self.image = out / f"{NAME}.raw"
        return code == 0

    def judged(self):
        self.raw_base = self.raw(self.base)
        self.parts, self.old = disk.partitions(self.image), disk.partitions(self.raw_base)
        self.root = self.old[1]
        self.twice()
        self.containers()
        self.table()
        self.file_system(self.image, "e2fsck")
        self.identity()
        self.carried()
        self.tree()
        self.queries()
        self.larger()

    def twice(self):
        """A second bake, by one thread and from another file of the same bytes."""
        again = self.folder / "again"
        code, said = self.bench.bake(self.base, self.folder / "manifests", again, "-j", "1", formats="qcow2")
        files = [path.name for path in again.glob(f"{NAME}.*") if not path.name.endswith((".inputs.json", ".provenance.json"))]
        _, differ, missing = filecmp.cmpfiles(self.folder / "out", again, files, shallow=False)
        case("bakes twice to the same bytes", code == 0 and len(files) > 2 and not differ and not missing, (said, differ, missing))
        # Which formats were asked for is one of the inputs, and of what the provenance names.
        first, second = ({**json.loads((out / f"{NAME}.inputs.json").read_bytes()), "formats": None} for out in (self.folder / "out", again))
        case("bakes twice from the same inputs", first == second, (first, second))

    def containers(self):
        qcow2 = self.image.with_suffix(".qcow2")
        for words in (("check", "-q", qcow2), ("compare", "-q", self.image, qcow2)):
            self.said(f"qemu-img {words[0]}", "qemu-img", *words)

    def said(self, name, *command):
        """Whether a tool reports no errors."""
        done = run(*command, env=disk.ENVIRONMENT, errors="replace")
        case(name, done.returncode == 0, done.stdout + done.stderr)

    def table(self):
        """Partitions are unchanged, except for the end of the root partition."""
        verdict = disk.call("sgdisk", "-v", self.image)
        case("sgdisk -v", re.search("^No problems found", verdict, re.MULTILINE), verdict)
        end = lambda table: {number: one._replace(sectors=0) if one == table[1] and not self.variant.behind else one for number, one in table.items()}  # noqa: E731
        case("the partition table stays", end(self.parts) == end(self.old) and len(self.parts) >= 3, (self.parts, self.old))

    def file_system(self, image, name):
        self.said(name, "e2fsck", "-fn", f"{image}?offset={self.root.start}")

    def identity(self):
        """UUID, label and hash seed of the root file system."""
        found = [re.findall(r"^(?:Filesystem volume name|Filesystem UUID|Directory Hash Seed): .*", disk.call("dumpe2fs", "-h", f"{raw}?offset={self.root.start}"),
                            re.MULTILINE) for raw in (self.raw_base, self.image)]
        case("UUID, label and hash seed stay", found[0] == found[1] and len(found[0]) == 3, found)

    def carried(self):
        """The boot code and all other partitions, byte by byte."""
        others = [one for number, one in self.parts.items() if number != 1]
        differ = [one.number for one in others if not disk.same(self.raw_base, one.start, self.image, one.start, one.length)]
        code = disk.same(self.raw_base, 0, self.image, 0, disk.BOOT_CODE)
        case("boot code and other partitions stay", code and not differ, (code, differ))

    def tree(self):
        """Files: unchanged ones of the base, and packages as listed by dpkg."""
        trees = []
        for name, raw in ("before", self.raw_base), ("after", self.image):
            path = self.folder / name
            variants.dump(raw, self.root, path)
            trees.append(path)
        before, after = map(listed, trees)
        differ = sorted(path for path, found in before.items() if after.get(path) != found and not CHANGED.fullmatch(path))
        case(f"{len(before)} paths of the base stay", len(before) > 10000 and not differ, [(path, before[path], after.get(path)) for path in differ[:10]])
        audits = [disk.call("dpkg", f"--root={tree}", "--audit") for tree in trees]
        case("dpkg --audit", audits == ["", ""], audits)
        verdicts = [set(verify(tree)) for tree in trees]
        case("dpkg --verify", not verdicts[1] - verdicts[0], verdicts)

    def queries(self):
        """vmbake's own checks of the image."""
        code, said = self.bench.tell("lint", self.image)
        case("lint", code == 0, said)
        report, said = self.bench.ask("inspect", self.image)
        if report is None:
            case("inspect", False, said)
            return
        found = {one["number"]: (one["start"], one["size"]) for one in report["partitions"]}
        case("inspect: partitions", found == {number: (one.start, one.length) for number, one in self.parts.items()}, report)
        system = report["system"]
        kernels = sorted(path.name.removeprefix("vmlinuz-") for path in (self.lab.tree / "boot").glob("vmlinuz-*"))
        right = (report["root"], system["image_id"], sorted(system["kernels"]), "root=PARTUUID=" in (system["command_line"] or ""))
        case("inspect: system", right == (1, "node", kernels, True), report)

    def larger(self):
        """A disk of more bytes; where a partition is behind the root it is refused, in one sentence that names it."""
        out, length = self.folder / "larger", self.raw_base.stat().st_size + (1 << 30)
        code, said = self.bench.bake(self.base, self.folder / "manifests", out, "--size", str(length), formats="raw")
        if self.variant.behind:
            right = code == 1 and len(re.findall("^error: .*", said, re.MULTILINE)) == 1 and re.search(rf"partition {self.variant.behind}\b", said)
            case("a larger disk is refused", right and not list(out.glob("*")), said)
            return
        case("bakes for a larger disk", code == 0, said)
        if code == 0:
            image = out / f"{NAME}.raw"
            self.file_system(image, "e2fsck of the larger disk")
            sectors = disk.partitions(image)[1].sectors
            # Its end is a multiple of 1 MiB.
            case("the root has the room", (sectors - self.root.sectors) * disk.SECTOR > (1 << 30) - disk.MIB, sectors)

    def interrupted(self):
        """A journal that was not played: a bake refuses in one sentence; queries play it, or refuse, but show nothing that is stale."""
        code, said = self.bench.bake(self.base, self.bench.unpinned, self.folder / "out")
        self.refused("a bake refuses", code, said)
        case("nothing is left of it", not list((self.folder / "out").glob("*")))
        code, said = self.bench.tell("cat", self.base, variants.WITNESS)
        if code == 0:
            case("cat: shows what the journal has", said == variants.PLAYED, said)
        else:
            self.refused("cat refuses", code, said)
        numbers = [one["number"] for one in self.report["partitions"]] if self.report else None
        case("inspect: partitions", numbers == [1, 14, 15], self.report)

    def refused(self, name, code, said):
        """One error with the file, the obstacle and a helpful tool."""
        errors = re.findall("^error: .*", said, re.MULTILINE)
        right = code == 1 and len(errors) == 1 and self.base.name in said and re.search("journal|needs_recovery", said) and "e2fsck" in said
        case(name, right, said)


def listed(tree):
    """{path: properties} of a tree that debugfs wrote: type, mode, owner where it is this user's to give, time, content or target."""
    found = {}
    for place, directories, files in os.walk(tree):
        for name in directories + files:
            path = os.path.join(place, name)
            meta = os.lstat(path)
            owner = (meta.st_uid, meta.st_gid) if os.getuid() == 0 else None
            what = [stat.S_IFMT(meta.st_mode), stat.S_IMODE(meta.st_mode), owner]
            if stat.S_ISREG(meta.st_mode):
                what += [int(meta.st_mtime), meta.st_size, hash(pathlib.Path(path).read_bytes())]
            if stat.S_ISLNK(meta.st_mode):
                what.append(os.readlink(path))
            found[path[len(str(tree)):]] = tuple(what)
    return found


def verify(tree):
    """The lines of dpkg --verify, which end it with 1 where there are any."""
    return run("dpkg", f"--root={tree}", "--verify", env={**disk.ENVIRONMENT, "HOME": "/nonexistent"}).stdout.splitlines()


@pytest.fixture(scope="module")
def lab(base):
    with tempfile.TemporaryDirectory(prefix="bases.", dir="/var/tmp") as folder:
        yield variants.Lab(base, pathlib.Path(folder))


@pytest.fixture(scope="module")
def bench(lab, vmbake, manifest, store):
    return Bench(vmbake, manifest, store, lab.folder)


def parameters():
    for name, variant in variants.VARIANTS.items():
        marks = [] if variant.quick else [pytest.mark.slow]
        yield pytest.param(name, id=name, marks=[*marks, pytest.mark.needs("root")] if variant.root else marks)


@pytest.mark.parametrize("variant", list(parameters()))
def test_bases(lab, bench, variant):
    Judge(variant, variants.VARIANTS[variant], lab, bench).go()
