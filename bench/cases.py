"""The cases of the table: each a function of a `Bench` that yields rows. Each run is a separate process, and each bake has a separate directory."""

import itertools
import os
import pathlib
import shutil
import subprocess

import measure
from row import Row

HERE = pathlib.Path(__file__).resolve().parent
KIND = "knc"
NAME = f"{KIND}.debian-13.amd64"
# Directories of a store with downloads; all others are caches of bakes.
DOWNLOADED = {"blobs", "index.json", "oci-layout"}
# Outputs to keep: a bake must not find an earlier one, unless the case requires it.
OUTPUTS = "bakes"
MIB = 1 << 20


class Bench:
    """Common data of cases: inputs, a working directory, the number of runs."""

    def __init__(self, vmbake, bases, inputs, work, options):
        self.vmbake, self.bases, self.base = pathlib.Path(vmbake).resolve(), bases, bases["amd64"]
        self.inputs, self.work = inputs, pathlib.Path(work)
        self.options, self.count, self._finished = options, 0, None
        self.environment = {"SOURCE_DATE_EPOCH": "1700000000"}

    def folder(self):
        """A new directory, which was never used for outputs."""
        self.count += 1
        folder = self.work / f"{os.getpid()}-{self.count}"
        folder.mkdir(parents=True)
        return folder

    def bake(self, out, form, manifest=None, size=None):
        """The command of a bake of `KIND` into `out`."""
        return [self.vmbake, "bake", KIND, "--arch", "amd64", "--offline", "--manifest", manifest or self.inputs.manifests[KIND], "--store",
                self.inputs.store, "--no-builtin=sources", "--sources", self.inputs.sources, "--base", self.base, "--size", size or self.options.size, "--format", form, "--force", "--out", out]

    def bake_pinned(self, out, form, kinds, arches):
        """The command of one bake of all these, each with the base that its manifest pins."""
        arches = [part for arch in arches for part in ("--arch", arch)]
        return [self.vmbake, "bake", *kinds, *arches, "--offline", "--manifests", next(iter(self.inputs.pinned.values())).parent, "--store",
                self.inputs.store, "--no-builtin=sources", "--sources", self.inputs.sources, "--size", self.options.size, "--format", form, "--force", "--out", out]

    def run(self, command, *inputs):
        """Runs a command after bringing its inputs into the requested page cache state and syncing all writes."""
        measure.settle()
        if self.options.cold_pages:
            measure.forget()
        else:
            measure.warm(*inputs)
        return measure.run(command, self.work / "log", **self.environment)

    def measured(self, command):
        """A bake, or another command that reads the base and the store."""
        return self.run(command, self.inputs.store, self.base)

    def cold_store(self):
        """Keeps only downloads in the store."""
        for entry in self.inputs.store.iterdir():
            if entry.name not in DOWNLOADED:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def warm_store(self):
        """The store after another bake, without records of its outputs."""
        out = self.folder()
        measure.run(self.bake(out, "raw"), self.work / "log", **self.environment)
        shutil.rmtree(out)
        self.forget_outputs()

    def forget_outputs(self):
        shutil.rmtree(self.inputs.store / OUTPUTS, ignore_errors=True)

    def finished(self):
        """Raw and qcow2 of one bake, on which the baselines and the queries work."""
        if not self._finished:
            out = self.folder()
            measure.run(self.bake(out, "raw,qcow2"), self.work / "log", **self.environment)
            self._finished = out / f"{NAME}.raw", out / f"{NAME}.qcow2"
        return self._finished


def warm_raw(bench):
    """Only necessary work: decoded artifacts exist, and the digest of a disk that was baked before, elsewhere."""
    raw, _ = bench.finished()
    runs, firsts, copies, synced = [], [], [], []
    for _ in range(bench.options.runs):
        for times in (firsts, runs):
            if times is firsts:
                bench.warm_store()
            out = bench.folder()
            times.append(bench.measured(bench.bake(out, "raw")))
            shutil.rmtree(out)
        out = bench.folder()
        copies.append(bench.run(["cp", "--sparse=always", raw, out / "copy"], raw))
        shutil.rmtree(out)
        # A bake is done when its output is on the disk; cp is done earlier.
        out = bench.folder()
        synced.append(bench.run(["sh", "-c", 'cp --sparse=always "$1" "$2" && sync "$2"', "sh", raw, out / "copy"], raw))
        shutil.rmtree(out)
    yield Row.ratio("bake knc to raw, store warm", 1.3, runs, "cp --sparse=always, synced", synced)
    yield Row.ratio("  a disk that was never baked, all of it hashed", 1.3, firsts, "cp --sparse=always, synced", synced)
    yield Row("  compared with cp without sync", "ratio", 1.3, measure.median(runs).wall / measure.median(copies).wall,
              "cp --sparse=always", runs, copies)


def cold_raw(bench):
    """Every input is decoded once. The baseline only decodes."""
    runs, decodes = [], []
    script = ('qemu-img convert -m 2 -O raw "$1" base.raw; shift; printf "%s\\0" "$@" |'
              ' xargs -0 -P 2 -n 1 sh -c \'gunzip <"$1" >"$(basename "$1").tar"\' sh')
    archives = sorted(bench.inputs.archives(KIND), key=lambda path: -path.stat().st_size)
    for _ in range(bench.options.runs):
        bench.cold_store()
        out = bench.folder()
        runs.append(bench.measured(bench.bake(out, "raw")))
        shutil.rmtree(out)
        out = bench.folder()
        decodes.append(bench.measured(["sh", "-euc", 'cd "$1"; shift; ' + script, "sh", out, bench.base, *archives]))
        shutil.rmtree(out)
    yield Row.ratio("bake knc to raw, store cold", 1.2, runs, "qemu-img convert -m 2 of the base, gunzip", decodes)


def cold_qcow2(bench):
    """Decoded, placed and compressed."""
    raw, _ = bench.finished()
    runs, converts = [], []
    for _ in range(bench.options.runs):
        bench.cold_store()
        out = bench.folder()
        runs.append(bench.measured(bench.bake(out, "qcow2")))
        ours = (out / f"{NAME}.qcow2").stat().st_size
        shutil.rmtree(out)
        out = bench.folder()
        command = ["qemu-img", "convert", "-m", "2", "-W", "-c", "-O", "qcow2", "-o", "compression_type=zstd", raw, out / "converted"]
        converts.append(bench.run(command, raw))
        theirs = (out / "converted").stat().st_size
        shutil.rmtree(out)
    bench.cold_runs = runs
    yield Row.ratio("bake knc to qcow2, store cold", 0.8, runs, "qemu-img convert -m 2 -W -c, zstd", converts)
    yield Row("  its size", "ratio", 1.0, ours / theirs, "that of qemu-img", notes={"bytes": ours, "baseline_bytes": theirs})


def cold_bakes(bench):
    """Runs of the cold bake to qcow2, of this table where that case ran."""
    if not hasattr(bench, "cold_runs"):
        list(cold_qcow2(bench))
    return bench.cold_runs


def again(bench):
    """Each run bakes over the output of the one before it, from a release that the store has only downloaded."""
    colds = cold_bakes(bench)
    bench.cold_store()
    out, runs = bench.folder(), []
    measure.run(bench.bake(out, "qcow2"), bench.work / "log", **bench.environment)
    for release in bench.inputs.releases[:bench.options.runs]:
        runs.append(bench.measured(bench.bake(out, "qcow2", release)))
    again = out / f"{NAME}.qcow2"
    fresh = bench.folder()
    measure.run(bench.bake(fresh, "qcow2", release), bench.work / "log", **bench.environment)
    same = subprocess.run(["cmp", "-s", again, fresh / again.name], check=False).returncode == 0
    yield Row.ratio("bake again, one artifact of 60 MB changed", 0.25, runs, "bake knc to qcow2, store cold", colds, same_bytes_as_fresh=same)
    yield Row("  its peak memory", "MiB", 256, max(usage.peak_mib for usage in runs), runs=runs)
    if not same:
        raise measure.Failed("a bake over an earlier output has other bytes than one without")
    shutil.rmtree(out)
    shutil.rmtree(fresh)


def unchanged(bench):
    out = bench.folder()
    command = bench.bake(out, "raw,qcow2")
    measure.run(command, bench.work / "log", **bench.environment)
    runs = [bench.measured(command) for _ in range(bench.options.runs)]
    yield Row("bake again, nothing changed", "s", 0.2, measure.median(runs).wall, runs=runs)
    shutil.rmtree(out)


def many(bench):
    """Every kind and architecture for which there are inputs, by one command, and each by itself as on a machine that bakes nothing else."""
    kinds, arches = list(bench.inputs.pinned), list(bench.bases)
    for form in ("qcow2", "raw,qcow2"):
        singles, runs = [], []
        for _ in range(bench.options.runs):
            alone = []
            for arch, kind in itertools.product(arches, kinds):
                bench.cold_store()
                out = bench.folder()
                alone.append(bench.measured(bench.bake_pinned(out, form, [kind], [arch])))
                shutil.rmtree(out)
            singles.append(measure.Usage(sum(usage.wall for usage in alone), sum(usage.cpu for usage in alone), 0))
            bench.cold_store()
            out = bench.folder()
            runs.append(bench.measured(bench.bake_pinned(out, form, kinds, arches)))
            shutil.rmtree(out)
        case = f"{' and '.join(kinds)}, {' and '.join(arches)}, to {form} in one command"
        yield Row.ratio(case, 0.8, runs, "each by itself", singles)


def memory(bench):
    """The peak of a bake to both formats, on disks of several sizes."""
    for size in ("8G", "64G"):
        bench.cold_store()
        out = bench.folder()
        runs = [bench.measured(bench.bake(out, "raw,qcow2", size=size))]
        shutil.rmtree(out)
        yield Row(f"peak memory, disk of {size}", "MiB", 256, runs[0].peak_mib, runs=runs)


def queries(bench):
    """Of a qcow2. The files are small, but for a program, which is compared with its record: it is read, as `cat` does."""
    _, image = bench.finished()
    program = "/usr/local/sbin/runc"

    def asked(*arguments):
        runs = [bench.run([bench.vmbake, arguments[0], image, *arguments[1:]], image) for _ in range(max(5, bench.options.runs))]
        return f"vmbake {' '.join(arguments)} of a qcow2", runs, measure.median(runs).wall * 1000
    for arguments in (["ls", "/etc"], ["cat", "/etc/os-release"], ["inspect"], ["explain", "/etc/os-release"]):
        case, runs, milliseconds = asked(*arguments)
        yield Row(case, "ms", 50, milliseconds, runs=runs)
    _, cats, reading = asked("cat", program)
    case, runs, milliseconds = asked("explain", program)
    yield Row(f"{case}, beyond cat", "ms", 50, milliseconds - reading, f"cat {program}", runs, cats)


PEERS = {"root": ("the classic root script", 5, ["losetup", "resize2fs", "sgdisk"]),
         "rootless": ("the classic way without root", 8, ["fakeroot", "debugfs", "sgdisk"]),
         "virt-customize": ("virt-customize", 20, ["virt-customize", "guestfish"])}


def peers(bench):
    """The ordinary ways, from the same inputs to a compressed qcow2. They take minutes: one run each."""
    from harness.installed import site
    from harness.paths import ROOT
    folder = bench.folder()
    for name, (said, factor, needed) in PEERS.items():
        case = f"{said}, at least {factor} x faster"
        missing = [tool for tool in needed if not shutil.which(tool)]
        if missing or os.getuid() != 0:
            yield Row.skip(case, f"missing: {', '.join(missing)}" if missing else "needs root", 1 / factor)
            continue
        if not (folder / "site").exists():
            site(folder, bench.inputs.folder)
        command = [HERE / f"peers/{name}.sh", bench.base, bench.options.size, folder / "site", ROOT / "layers", folder / "made.qcow2"]
        try:
            notes = appliance(bench) if name == "virt-customize" else {}
            runs = [bench.run(command, folder / "site", bench.base)]
        except measure.Failed as failed:
            yield Row.skip(case, str(failed), 1 / factor)
            continue
        notes["bytes"] = (folder / "made.qcow2").stat().st_size
        (folder / "made.qcow2").unlink()
        yield Row.ratio(case, 1 / factor, cold_bakes(bench), f"peers/{name}.sh", runs, **notes)
    shutil.rmtree(folder)


def appliance(bench):
    """Has libguestfs build its appliance, which is kept for all later runs, and start it: by KVM where that works, else below emulation."""
    command = ["guestfish", "-a", "/dev/null", "run"]
    bench.environment |= {"LIBGUESTFS_BACKEND": "direct"}
    try:
        measure.run(command, bench.work / "log", **bench.environment)
        return {"accelerator": "kvm"}
    except measure.Failed:
        bench.environment |= {"LIBGUESTFS_BACKEND_SETTINGS": "force_tcg"}
        measure.run(command, bench.work / "log", **bench.environment)
        return {"accelerator": "tcg"}


CASES = {function.__name__: function for function in (warm_raw, cold_raw, cold_qcow2, again, unchanged, many, peers, memory, queries)}
