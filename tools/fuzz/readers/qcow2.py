"""qcow2 images: vmbake's bytes compared with those of `qemu-img convert`.

Exempt are reference counts, snapshots, header extensions and autoclear features, which QEMU checks and reading a disk needs none of. What zstd has compressed
is not damaged itself: it has no checksum there, and versions of libzstd make different bytes of the same damage.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness.debugfs import PIECE, digest_of
from readers import edits

EXAMPLE = "disk"
# Length of the disks in bytes: several L2 tables with small clusters, and an end within a cluster.
LENGTH = 300 * 1024 + 512
SEEDS = {
    "v2": "compat=0.10", "v2-512": "compat=0.10,cluster_size=512", "v2-c": "compat=0.10", "v3": "compat=1.1",
    "v3-512": "compat=1.1,cluster_size=512", "v3-4k": "compat=1.1,cluster_size=4k", "v3-4k-c": "compat=1.1,cluster_size=4k",
    "v3-c": "compat=1.1", "zstd-c": "compat=1.1,compression_type=zstd", "zstd-4k-c": "compat=1.1,compression_type=zstd,cluster_size=4k",
    "wide-refcounts": "compat=1.1,cluster_size=4k,refcount_bits=64", "lazy": "compat=1.1,cluster_size=4k,lazy_refcounts=on",
    "subclusters": "compat=1.1,extended_l2=on,cluster_size=16k", "2m-c": "compat=1.1,cluster_size=2M",
}
# Offset and bytes of the header's numbers.
HEADER = [(4, 4), (8, 8), (16, 4), (20, 4), (24, 8), (32, 4), (36, 4), (40, 8), (48, 8), (56, 4), (60, 4), (64, 8), (72, 8),
          (80, 8), (88, 8), (96, 4), (100, 4), (104, 1), (105, 7), (112, 4), (116, 4)]
# QEMU's errors about parts that vmbake does not read.
EXEMPT = ("Reference count", "Image does not contain a reference count table", "Refblock offset", "Snapshot table", "Too many snapshots",
          "snapshot table entry", "Header extension", "data-file-raw requires a data file")
OFFSET = 0x00FFFFFFFFFFFE00


def missing():
    return "" if shutil.which("qemu-img") and shutil.which("qemu-io") else "qemu-img is missing"


def make_seeds(folder):
    raw = folder / "raw"
    with open(raw, "wb") as file:
        file.truncate(LENGTH)
        for at in range(0, LENGTH, 24 * 1024):
            file.seek(at)
            file.write(b"".join(b"%d %d\n" % (at, line * line) for line in range(900)))
        file.truncate(LENGTH)
    for name, options in SEEDS.items():
        compressed = ["-c"] if name.endswith("-c") else []
        run("qemu-img", "convert", *compressed, "-f", "raw", "-O", "qcow2", "-o", options, raw, folder / name)
        if not name.startswith("v2"):
            # Clusters that are zeros by a flag, with and without a place in the file.
            run("qemu-io", "-f", "qcow2", "-c", "write -z 64k 64k", "-c", "write -z -u 192k 32k", folder / name)
    run("qemu-img", "snapshot", "-c", "before", folder / "v3-4k")
    run("qemu-io", "-f", "qcow2", "-c", "write -P 7 10k 30k", folder / "v3-4k")
    forget_time(folder / "v3-4k")
    raw.unlink()


def forget_time(path):
    """The only snapshot is made at no time, so that seeds are the same in every run."""
    with open(path, "r+b") as file:
        file.seek(64)
        file.seek(int.from_bytes(file.read(8), "big") + 16)
        file.write(bytes(8))


def make(random, seeds, path):
    name, data = random.choice(seeds)
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice((header, l1_entry, l2_entry, l2_entry, l2_entry, l2_entry, content, anywhere, length))(random, data)
    path.write_bytes(data)


def header(random, data):
    edits.number(random, data, *random.choice(HEADER), "big")


def l1_entry(random, data):
    start, count = int.from_bytes(data[40:48], "big"), min(int.from_bytes(data[36:40], "big"), 64)
    entry(random, data, start, count)


def tables(data):
    """The L2 tables: start, number of words."""
    start, count = int.from_bytes(data[40:48], "big"), min(int.from_bytes(data[36:40], "big"), 64)
    words = (int.from_bytes(data[at:at + 8], "big") & OFFSET for at in range(start, start + 8 * count, 8))
    return [(word, cluster(data) // 8) for word in words if 0 < word < len(data)]


def cluster(data):
    return 1 << min(max(int.from_bytes(data[20:24], "big"), 9), 21)


def l2_entry(random, data):
    found = tables(data)
    if found:
        start, count = random.choice(found)
        # Few of a table's entries stand for a part of the disk.
        entry(random, data, start, min(count, LENGTH // cluster(data) + 2))


def entry(random, data, start, count):
    """Changes one of the words of a table."""
    at = start + 8 * random.randrange(max(count, 1))
    if at + 8 > len(data):
        return
    if random.random() < 0.2:
        edits.swap(random, data, start, count, 8)
    elif random.random() < 0.5:
        word = int.from_bytes(data[at:at + 8], "big")
        bit = random.choice((0, 0, 1, 5, 8, 9, 12, 16, 55, 56, 60, 61, 62, 62, 63, random.randrange(64)))
        data[at:at + 8] = (word ^ 1 << bit).to_bytes(8, "big")
    else:
        edits.number(random, data, at, 8, "big")


def content(random, data):
    """A byte of a compressed or other cluster."""
    words = [int.from_bytes(data[at:at + 8], "big") for start, count in tables(data)
             for at in range(start, start + 8 * min(count, 80), 8)]
    if is_zstd(data):
        return
    offsets = [word & 0x3FFFFFFFFFFF for word in words if word & OFFSET]
    if offsets:
        start = random.choice(offsets)
        edits.byte(random, data, start, start + 400)


def anywhere(random, data):
    if not is_zstd(data):
        edits.byte(random, data, 4, len(data))


def is_zstd(data):
    return len(data) > 104 and data[104] == 1


def length(random, data):
    """Cuts the end off, or adds to it."""
    if random.random() < 0.7:
        del data[random.randrange(len(data)):]
    else:
        data.extend(bytes(random.randrange(1, 70000)))


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def convert(path):
    """(whether qemu-img reads it, its length and digest or what it says)."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        out = pathlib.Path(folder, "raw")
        try:
            done = subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", path, out], capture_output=True, check=False,
                                  timeout=20, cwd=folder)
        except subprocess.TimeoutExpired:
            return False, "qemu-img does not end"
        # It reports misread data.
        if done.returncode != 0 or done.stderr:
            return False, done.stderr.decode(errors="replace").replace(str(path), "").strip()[-200:]
        return True, (str(out.stat().st_size), digest(out))


def digest(path):
    """As the example prints it; holes are not read."""
    def pieces():
        end = os.fstat(file.fileno()).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // PIECE * PIECE
            except OSError:
                return
            yield at, os.pread(file.fileno(), min(PIECE, end - at), at)
            at += PIECE
    with open(path, "rb") as file:
        return digest_of(pieces())


def accepts(path):
    return convert(path)[0]


def compare(path, lines):
    row = lines[1].split("\t")
    read, found = convert(path)
    if not read:
        for exempt in EXEMPT:
            if exempt in found:
                return "exempt", exempt
        return "THEY REFUSE", found
    if (row[6], row[7]) != found:
        return "DIFFERS", f"{row[6]} bytes {row[7][:12]}, qemu-img {found[0]} bytes {found[1][:12]}"
    return "equal", ""
