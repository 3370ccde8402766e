#!/usr/bin/env python3
"""bench.py VMBAKE IMAGE [RUNS]: cost of a publication to AWS, compared with sha256sum, coldsnap and a load generator that neither reads nor hashes.

IMAGE is a raw image of a baked node. It is published to fast.rs on loopback, alternating with the compared tools. Prints a table of ratios; exit status 1 if a
limit is exceeded. Rows without a limit are components of the others. coldsnap is built from crates.io once, into target/coldsnap, which takes minutes. Run it on a machine that does
nothing else.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import measure

from harness.paths import ROOT

HERE = pathlib.Path(__file__).resolve().parent
COLDSNAP = "0.12.0"
BLOCK = 512 << 10
MEMORY_MIB = 128
# Milliseconds until the service answers, where the ordinary way is compared.
LATENCY = 20
# The limit of an account: puts per second.
QUOTA = 1000
# Difference between two releases.
CHANGED = 60 << 20
FILES = "/usr/bin/containerd", "/usr/bin/ctr"
ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true"} | dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)


class Fast:
    """The fast server, until the block ends."""

    def __init__(self, program, *options):
        self.words = [program, "serve", *map(str, options)]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().removeprefix("url=")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def last(self):
        """Data of the newest snapshot."""
        with urllib.request.urlopen(f"{self.url}/_fast/state", timeout=20) as answer:
            return json.load(answer)[-1]


class Bench:
    def __init__(self, vmbake, coldsnap, fast, folder, runs):
        self.vmbake, self.coldsnap, self.fast, self.folder, self.runs = vmbake, coldsnap, fast, folder, runs
        self.missed, self.peak, self.count = False, 0.0, 0

    def row(self, name, value, unit, bar=None, least=False):
        missed = bar is not None and (value < bar if least else value > bar)
        self.missed |= missed
        against = "" if bar is None else f"{'at least' if least else 'at most'} {bar:.2f}{'  MISSED' if missed else ''}"
        print(f"{name:72} {value:8.2f} {unit:9} {against}".rstrip(), flush=True)

    def fresh(self):
        self.count += 1
        return self.folder / f"store{self.count}"

    def run(self, *words):
        measure.settle()
        used = measure.run(words, self.folder / "said")
        if words[0] == self.vmbake:
            self.peak = max(self.peak, used.peak_mib)
        return used

    def publish(self, server, image, name, store):
        """Publishes, and compares the list of blocks afterwards: the fast server forgets what they hold."""
        options = ["--name", name, "--family", "bench", "--endpoint-url", server.url, "--store", store, "--verify", "index"]
        return self.run(self.vmbake, "publish", "aws", image, *options)

    def turns(self, *measures):
        """The medians of some measures, each a function that gives a number."""
        found = [[] for _ in measures]
        for _ in range(self.runs):
            for numbers, one in zip(found, measures):
                numbers.append(one())
        return [sorted(numbers)[len(numbers) // 2] for numbers in found]


def planner(bench, image):
    """Reads the blocks that a snapshot takes and hashes them, as two sha256sum do with the same bytes."""
    said = json.loads(subprocess.run([bench.vmbake, "preflight", "aws", image, "--snapshot", "--json"], check=True, capture_output=True, text=True).stdout)
    indexes = [entry["index"] for entry in said["snapshot"]["blocks"]]
    halves = bench.folder / "half1", bench.folder / "half2"
    for half, part in zip(halves, (indexes[:len(indexes) // 2], indexes[len(indexes) // 2:])):
        copy_blocks(image, half, part)
    measure.warm(image, *halves)
    plan = lambda: bench.run(bench.vmbake, "preflight", "aws", image, "--snapshot").wall  # noqa: E731
    sums = lambda: bench.run("sh", "-c", 'sha256sum "$1" & sha256sum "$2"; wait', "sh", *halves).wall  # noqa: E731
    ours, theirs = bench.turns(plan, sums)
    for half in halves:
        half.unlink()
    bench.row(f"plan of {len(indexes)} blocks", ours, "s")
    bench.row("plan / sha256sum of the same bytes, halves on two cores", ours / theirs, "x", 1.1)
    return len(indexes)


def copy_blocks(image, target, indexes):
    with open(image, "rb") as source, open(target, "wb") as out:
        for index in indexes:
            at, left = index * BLOCK, BLOCK
            while left and (count := os.copy_file_range(source.fileno(), out.fileno(), left, at)):
                at, left = at + count, left - count


def sending(bench, image, blocks, name, *options):
    """Blocks per second, from the start of the snapshot to its end, and those of the generator."""
    def ours():
        with Fast(bench.fast, *options) as server:
            bench.publish(server, image, "node-1", bench.fresh())
            one = server.last()
            return one["puts"] / one["seconds"]

    def theirs():
        with Fast(bench.fast, *options) as server:
            bench.run(bench.fast, "load", server.url, "--connections", "64", "--blocks", str(blocks))
            return float(re.search(r"blocks/s=([0-9]+)", (bench.folder / "said").read_text())[1])
    ours, theirs = bench.turns(ours, theirs)
    bench.row(f"blocks of the generator, {name}", theirs, "blocks/s")
    bench.row(f"blocks of vmbake, {name}", ours, "blocks/s")
    return ours / theirs


def releases(bench, old, new, differing):
    """The second of two releases sends only differences."""
    with Fast(bench.fast) as server:
        store = bench.fresh()
        bench.publish(server, old, "node-1", store)
        bench.publish(server, new, "node-2", store)
        one = server.last()
    bench.row(f"blocks sent / blocks that differ ({differing}), {CHANGED >> 20} MiB changed", one["puts"] / differing, "x", 1.1)


def ordinary(bench, old, new):
    """coldsnap, which leaves zeros out and sends everything else."""
    def upload(image):
        def once():
            with Fast(bench.fast, "--latency", LATENCY) as server:
                return bench.run(bench.coldsnap, "--endpoint", server.url, "upload", "--omit-zero-blocks", "--no-progress", image).wall
        return once

    def first():
        with Fast(bench.fast, "--latency", LATENCY) as server:
            return bench.publish(server, old, "node-1", bench.fresh()).wall

    def second():
        with Fast(bench.fast, "--latency", LATENCY) as server:
            store = bench.fresh()
            bench.publish(server, old, "node-1", store)
            return bench.publish(server, new, "node-2", store).wall
    ours, ours_next, theirs, theirs_next = bench.turns(first, second, upload(old), upload(new))
    for name, value in ("vmbake, first release", ours), ("vmbake, second release", ours_next), ("coldsnap, first release", theirs), ("coldsnap, second release", theirs_next):
        bench.row(f"{name}, {LATENCY} ms of latency", value, "s")
    bench.row("coldsnap / vmbake, first release", theirs / ours, "x", 2, least=True)
    bench.row("coldsnap / vmbake, second release", theirs_next / ours_next, "x", 10, least=True)


def changed_copy(bench, image):
    """A copy with other bytes in 60 MiB of files, and how many blocks differ."""
    new = bench.folder / "new.raw"
    subprocess.run(["cp", "--sparse=always", image, new], check=True)
    root = next(part for part in json.loads(subprocess.run([bench.vmbake, "inspect", image, "--json"], check=True, capture_output=True, text=True).stdout)["partitions"] if part["number"] == 1)
    unit, left, touched = root["filesystem"]["block_size"], CHANGED, set()
    with open(new, "r+b", buffering=0) as disk:
        for path in FILES:
            said = subprocess.run(["debugfs", "-R", f"blocks {path}", f"{new}?offset={root['start']}"], check=True, capture_output=True, text=True).stdout
            for number in map(int, said.split()[:left // unit]):
                at = root["start"] + number * unit
                block = os.pread(disk.fileno(), unit, at)
                os.pwrite(disk.fileno(), bytes(255 - byte for byte in block), at)
                left -= unit
                touched.add(at // BLOCK)
    if left:
        sys.exit(f"{' and '.join(FILES)} of {image} are too small: {left} bytes are missing")
    return new, len(touched)


def programs():
    """The fast server, compiled here, and coldsnap."""
    fast, coldsnap = ROOT / "target/aws/fast", ROOT / "target/coldsnap/bin/coldsnap"
    fast.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["rustc", "--edition=2024", "-O", "-Cpanic=abort", "-o", fast, HERE / "fast.rs"], check=True)
    if not coldsnap.exists():
        install = ["cargo", "install", "--quiet", "--locked", "--version", COLDSNAP, "--root", coldsnap.parents[1], "coldsnap"]
        environment = {name: value for name, value in os.environ.items() if name != "RUSTC_WORKSPACE_WRAPPER"}
        if subprocess.run(install, env=environment).returncode:
            return fast, None
    return fast, coldsnap


def main():
    vmbake, image = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    os.environ.update(ACCOUNT)
    fast, coldsnap = programs()
    # A large file in memory would be slower than one in the page cache, so the disk it is.
    with tempfile.TemporaryDirectory(prefix="bench-publish-", dir=ROOT / "target") as folder:
        bench = Bench(vmbake, coldsnap, fast, pathlib.Path(folder), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
        new, differing = changed_copy(bench, image)
        measure.warm(image, new)
        blocks = planner(bench, image)
        bench.row("vmbake / generator, 64 connections", sending(bench, image, blocks, "loopback"), "x", 0.8, least=True)
        bench.row(f"vmbake / generator, {QUOTA} puts a second", sending(bench, image, blocks, f"{QUOTA}/s", "--rate", QUOTA), "x", 0.8, least=True)
        releases(bench, image, new, differing)
        if coldsnap:
            ordinary(bench, image, new)
        else:
            print("coldsnap cannot be built here: nothing is compared with it")
        bench.row("peak memory of vmbake", bench.peak, "MiB", MEMORY_MIB)
    return 1 if bench.missed or not coldsnap else 0


if __name__ == "__main__":
    sys.exit(main())
