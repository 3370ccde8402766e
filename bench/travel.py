#!/usr/bin/env python3
"""travel.py ORAS VMBAKE BASE STORE [RUNS]: cost of transferring releases: to and from a registry on loopback, as a delta, as an archive; compared with zstd, oras,
curl and cp with the same bytes. Bakes two releases of a node that differ in one program of 60 MB of real machine code. Prints a table of
ratios; exit status 1 if a limit is exceeded. Run it on a machine that does nothing else.
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import measure

PROGRAM = 60 << 20
PIECE = 4 << 20
HEADER = 1 << 20
KIND = "travel"
NAME = f"{KIND}.debian-13.amd64"
MEMORY_MIB = 256


class Registry:
    """Debian's docker-registry, with an access log of uploads and downloads."""

    def __init__(self, folder):
        folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        (folder / "config.yml").write_text(f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {folder}/data\nhttp:\n  addr: {self.address}\n")
        self.log = folder / "log"
        self.process = subprocess.Popen(["docker-registry", "serve", folder / "config.yml"], stdout=open(self.log, "w"), stderr=subprocess.DEVNULL)
        while socket.socket().connect_ex(("127.0.0.1", int(self.address.split(":")[1]))):
            if self.process.poll() is not None:
                sys.exit("docker-registry does not start")
            time.sleep(0.05)
        self.data = folder / "data"

    def blobs(self):
        """The length of each blob that is there."""
        return {path.parent.name: path.stat().st_size for path in self.data.glob("docker/registry/v2/blobs/sha256/*/*/data")}

    def gets(self):
        """Number of requested blobs since the last call, by digest."""
        lines = re.findall(r'"GET /v2/\S+/blobs/sha256:([0-9a-f]{64}) HTTP', self.log.read_text())
        asked, self.seen = lines[getattr(self, "seen", 0):], len(lines)
        return asked

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Bench:
    def __init__(self, oras, vmbake, base, store, folder, runs):
        self.oras, self.vmbake, self.base, self.store, self.folder, self.runs = oras, vmbake, base, store, folder, runs
        self.rows, self.missed, self.peaks = [], False, {}
        self.count = 0

    def row(self, name, value, bar, unit="x", least=False):
        missed = value < bar if least else value > bar
        self.missed |= missed
        self.rows.append(f"{name:58} {value:8.2f} {unit:4} {'at least' if least else 'at most'} {bar:.2f}{'  MISSED' if missed else ''}")
        print(self.rows[-1], flush=True)

    def fresh(self):
        self.count += 1
        return self.folder / f"fresh{self.count}"

    def times(self, *commands):
        """The medians of runs of commands, each a function that makes one: in turn, so that what the disk does meanwhile falls on all of them."""
        used = [[] for _ in commands]
        for _ in range(self.runs):
            for runs, command in zip(used, commands):
                words = command()
                measure.settle()
                runs.append(measure.run(words, self.folder / "said"))
                if words[0] == self.vmbake:
                    self.peaks[words[1]] = max(self.peaks.get(words[1], 0), runs[-1].peak_mib)
        return [measure.median(runs).wall for runs in used]

    def emptied(self, path):
        """A path where nothing is: to write over a file is other work than to write a new one."""
        path.unlink(missing_ok=True)
        return path

    def bake(self, version, code, offset):
        work = self.folder / version
        layer = work / "layers" / KIND
        share = layer / "files/usr/local/share/tool"
        share.mkdir(parents=True)
        # A file of a layer has at most 4 MiB.
        for at in range(0, PROGRAM, PIECE):
            (share / f"{at // PIECE:02}").write_bytes(part(code, offset + at, PIECE))
        document = {"name": KIND, "version": version, "description": "Containers, and a program.", "os": ["debian-13"], "packages": ["containerd"]}
        (layer / "layer.json").write_text(json.dumps(document))
        for step in (["update", KIND, "--image", self.base], ["fetch", KIND], ["bake", KIND, "--base", self.base, "--offline"]):
            ran = subprocess.run([self.vmbake, *step, "--store", self.store], cwd=work, capture_output=True, text=True)
            if ran.returncode:
                sys.exit(ran.stderr)
        return work / "dist" / f"{NAME}.raw"


def part(file, offset, length):
    """A part of a file. The memory of this program is the least that the system says of those that it starts, so it must stay small."""
    with open(file, "rb") as opened:
        opened.seek(offset)
        return opened.read(length)


def registry(bench, old, new, compressed):
    """Push and pull. The registry's own time is that of `oras push` of the compressed image."""
    servers = []

    def server():
        servers.append(Registry(bench.fresh()))
        return servers[-1]

    push = lambda image: lambda: [bench.vmbake, "push", image, f"{server().address}/node:1"]  # noqa: E731
    zstd = lambda: ["zstd", "-3", "-T2", "-q", old, "-o", bench.emptied(compressed)]  # noqa: E731
    plain = lambda: [bench.oras, "push", "--plain-http", "--disable-path-validation", f"{server().address}/node:1", compressed]  # noqa: E731
    first, packed, sent = bench.times(push(old), zstd, plain)
    bench.row("push, first / (zstd -3 -T2 + oras push)", first / (packed + sent), 1.3)
    for one in servers:
        one.stop()
    here = Registry(bench.fresh())
    reference = f"{here.address}/node"
    run = lambda *command: measure.run(command, bench.folder / "said")  # noqa: E731
    run(bench.vmbake, "push", old, f"{reference}:1")
    before = here.blobs()
    run(bench.vmbake, "push", new, f"{reference}:2")
    added = sum(size for digest, size in here.blobs().items() if digest not in before)
    chunk = max(before.values())
    artifact = bench.artifact
    bench.row("push of the next release, MiB sent", added / 2**20, (1.35 * artifact + 6 * chunk) / 2**20, "MiB")

    def pull(tag, *more):
        return [bench.vmbake, "pull", f"{reference}:{tag}", "--allow-unsigned", "--store", bench.store, "--out", bench.fresh(), *more]

    accept = {"Accept": "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"}
    ask = lambda what: json.load(urllib.request.urlopen(urllib.request.Request(f"http://{here.address}/v2/node/manifests/{what}", headers=accept)))  # noqa: E731
    layers = [layer["digest"] for layer in ask(ask("1")["manifests"][0]["digest"])["layers"]]
    # The same chunk is there once.
    urls = [f"url = http://{here.address}/v2/node/blobs/{digest}\noutput = {digest[7:]}" for digest in dict.fromkeys(layers)]
    (bench.folder / "urls").write_text("\n".join(urls))
    chunks = bench.folder / "chunks"
    plain = f"rm -rf {chunks} {bench.folder}/plain.raw && mkdir -p {chunks} && cd {chunks} && curl -sS --parallel --parallel-max 4 --config ../urls && cat {' '.join(digest[7:] for digest in layers)} | zstd -dqf --sparse -o ../plain.raw && sync ../plain.raw .."
    pulled, curl = bench.times(lambda: pull(1), lambda: ["bash", "-euc", plain])
    bench.row("pull to raw / (curl in parallel + zstd -d)", pulled / curl, 1.3)
    here.gets()
    run(*pull(2, "--from", old))
    received = sum(here.blobs()[digest] for digest in here.gets())
    bench.row("pull --from the release before, MiB received", received / 2**20, (1.35 * artifact + 6 * chunk) / 2**20, "MiB")
    here.stop()


def deltas(bench, old, new):
    old, new = (path.with_suffix(".qcow2") for path in (old, new))
    delta = bench.folder / "node.delta"
    [made] = bench.times(lambda: [bench.vmbake, "delta", old, new, "-o", delta, "--store", bench.store, "--force"])
    bench.row("delta, MiB", delta.stat().st_size / 2**20, 1.2 * bench.artifact / 2**20, "MiB")
    bench.row("delta with records, seconds", made, 1.0, "s")
    base, changed = old.with_suffix(".raw"), bench.folder / "changed"
    subprocess.run(["dd", f"if={new.with_suffix('.raw')}", f"of={changed}", "bs=1M", f"count={PROGRAM >> 20}", "status=none"], check=True)
    copied = bench.folder / "copied"
    # Reflinks would copy nothing. What vmbake writes is on the disk when it has its name.
    copy = f"rm -f {copied}* && cp --reflink=never --sparse=always {base} {copied} && cp --reflink=never {changed} {copied}.changed && sync {copied} {copied}.changed {bench.folder}"
    raw = bench.folder / "raw.delta"
    measure.run([bench.vmbake, "delta", base, new.with_suffix(".raw"), "-o", raw, "--store", bench.store])
    applied, copying = bench.times(lambda: [bench.vmbake, "apply", raw, "--base", base, "-o", bench.fresh()], lambda: ["bash", "-euc", copy])
    bench.row("apply to raw / cp and sync of the base and the changed", applied / copying, 1.3)


def archives(bench):
    out = bench.folder / "node.tar"
    work = bench.folder / "two"
    command = [bench.vmbake, "archive", "create", KIND, "--manifests", work / "manifests", "--layers", work / "layers", "--base", bench.base, "--store", bench.store, "-o"]
    copied, source = bench.folder / "copied.tar", bench.folder / "source.tar"
    measure.run([*command, source])
    copy = f"rm -f {copied} && cp --reflink=never {source} {copied} && sync {copied} {bench.folder}"
    made, copying = bench.times(lambda: [*command, bench.emptied(out)], lambda: ["bash", "-euc", copy])
    members = subprocess.check_output(["tar", "-tvf", out], text=True).splitlines()
    blobs = sum(int(line.split()[2]) for line in members if "blobs/" in line)
    bench.row("archive / its blobs", out.stat().st_size / blobs, 1.02)
    bench.row("archive, throughput / cp and sync of it", copying / made, 0.8, least=True)


def main(oras, vmbake, base, store, runs="3"):
    oras, vmbake, base, store = (pathlib.Path(path).resolve() for path in (oras, vmbake, base, store))
    if not shutil.which("docker-registry"):
        sys.exit("docker-registry is missing: make setup")
    code = max(pathlib.Path(subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()).rglob("*.so"), key=lambda path: path.stat().st_size)
    if code.stat().st_size < HEADER + 2 * PROGRAM:
        sys.exit(f"{code} is too small")
    with tempfile.TemporaryDirectory(prefix="travel.", dir="/var/tmp") as folder:
        bench = Bench(oras, vmbake, base, store, pathlib.Path(folder), int(runs))
        # Behind its header: a piece that began as a program would have to be a whole one.
        old, new = bench.bake("one", code, HEADER), bench.bake("two", code, HEADER + PROGRAM)
        program = bench.folder / "program"
        with open(program, "wb") as file:
            for at in range(0, PROGRAM, PIECE):
                file.write(part(code, HEADER + PROGRAM + at, PIECE))
        subprocess.run(["zstd", "-3", "-q", program], check=True)
        bench.artifact = program.with_suffix(".zst").stat().st_size
        print(f"an image with a program of {PROGRAM >> 20} MiB, {bench.artifact / 2**20:.1f} MiB compressed; medians of {runs} runs")
        try:
            registry(bench, old, new, bench.folder / "whole.zst")
            deltas(bench, old, new)
            archives(bench)
        except measure.Failed as failed:
            sys.exit(f"travel.py: {failed}")
        for command, peak in bench.peaks.items():
            bench.row(f"memory of {command}", peak, MEMORY_MIB, "MiB")
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
