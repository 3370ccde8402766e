#!/usr/bin/env python3
"""volumes.py TREE [--keep DIR] [NAME...]: reads the test volumes of e2fsprogs and compares with debugfs.

TREE is the example program `tree` of vmbake-disk. Each volume is taken as it is and as `e2fsck -fy` repairs it; the forms that
`e2fsck -fn` then calls clean are compared: every path with its type, mode, owner, group, modification time, size, content, link
target, device, extended attributes and other names. A form whose journal needs recovery is compared with a copy in which e2fsck
has replayed it. The volumes are designed to break e2fsck, and repaired ones are as unusual as clean volumes can be.

Needs the source package of e2fsprogs from the Debian archive that apt uses, or DEBIAN_MIRROR, once. Prints a line for each form
that is refused or wrong, and a table; exit status 1 if one is wrong, if a refusal is not among EXPECTED, or if fewer are equal
than were.
"""

import argparse
import bz2
import concurrent.futures
import gzip
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

# The source of the archive's stable release, so that it stays where it is.
SOURCE = "pool/main/e/e2fsprogs/e2fsprogs_1.47.2.orig.tar.gz"
SHA256 = "6dcd67ff9d8b13274ba3f088e4318be4f5b71412cd863524423fc49d39a6371f"
KEPT = pathlib.Path("target/volumes")
# As many as are equal at least, of 280 that are clean.
EQUAL = 262
# Which forms are refused, and a part of the reason. The kernel refuses the damaged ones too, except for the link with a zero in it;
# that the superblock and the inodes contradict each other about `ea_inode` is only said by later versions of it and of e2fsck.
EXPECTED = {
    **{f"{name}, repaired": "encrypted file" for name in (
        "f_bad_encryption", "f_badsymlinks2", "f_dup_de_crypt", "f_encrypted_lpf", "f_short_encrypted_dirent")},
    **{f"{name}, as it is": "block group 0: checksum" for name in ("f_bad_gdt_csum", "f_uninit_enable")},
    **{f"j_corrupt_{name}, as it is": "of the journal: " for name in (
        "commit_csum", "descr_csum", "journal_block", "revoke_rcount")},
    **{f"f_ea_inode_no_feature, {form}": "without feature ea_inode" for form in ("as it is", "repaired")},
    "f_badtable, repaired": "directory entry of 0 bytes",
    "f_extent_too_deep, as it is": "extent tree of depth 7",
    "f_first_meta_bg_too_big, as it is": "meta block groups from 2 of 1",
    "f_inlinedata_repair, repaired": "link target",
    "f_zero_inode_size, as it is": "inodes of 0 bytes",
}
# e2fsck does not end on these forms.
ENDLESS = {("f_illitable_flexbg", "as it is"), ("f_misstable", "as it is")}
# Contents are hashed by pieces, as TREE does it; those that are all zeros are left out.
PIECE = 65536
# Of larger files, debugfs only tells where the blocks are: some are sparse and terabytes long.
LARGE = 64 << 20
TYPES = {0o01: "pipe", 0o02: "character", 0o04: "directory", 0o06: "block", 0o10: "file", 0o12: "link", 0o14: "socket"}
# debugfs shows the attributes of encryption and fs-verity too, which system calls do not show; their names have no namespace.
NAMESPACES = (b"user.", b"trusted.", b"security.", b"system.", b"gnu.")
ENVIRONMENT = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "LC_ALL": "C"}


class Unreadable(Exception):
    """debugfs does not read it either."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tree")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    volumes = [found for found in read_source(fetch()) if not args.names or found[0] in args.names]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(judge, args.tree, *volume, args.keep) for volume in volumes]
        results = [result for job in jobs for result in job.result()]
    sys.exit(report(len(volumes), results, whole=not args.names))


def report(volumes, results, whole):
    """Prints differences and a table."""
    failed = False
    for form, verdict, what in results:
        expected = EXPECTED.get(form, "\n") in what
        failed_here = verdict == "wrong" or (verdict == "refused" and not expected)
        failed |= failed_here
        if verdict != "equal":
            print(f"{'FAIL: ' if failed_here else ''}{form}: {verdict}: {what}")
    count = {verdict: sum(1 for result in results if result[1] == verdict) for verdict in ("equal", "refused", "wrong")}
    print(f"{volumes} volumes, {len(results)} clean forms: " + ", ".join(f"{n} {name}" for name, n in count.items()))
    if whole and count["equal"] < EQUAL:
        print(f"FAIL: {count['equal']} forms are equal, {EQUAL} were")
        failed = True
    return int(failed)


def fetch():
    """The source of e2fsprogs, from an earlier run or from the archive."""
    path = KEPT / SOURCE.rsplit("/", maxsplit=1)[1]
    if not path.exists():
        uris = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=True, capture_output=True, text=True)
        archives = [uri for uri in uris.stdout.split() if uri.rstrip("/").endswith("/debian")]
        mirror = os.environ.get("DEBIAN_MIRROR") or max(archives, key=archives.count)
        with urllib.request.urlopen(f"{mirror.rstrip('/')}/{SOURCE}", timeout=60) as answer:
            data = answer.read()
        check_sum(data)
        KEPT.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.rename(path)
    data = path.read_bytes()
    check_sum(data)
    return data


def check_sum(data):
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        sys.exit(f"{SOURCE}: sha256 {found}, expected {SHA256}")


def read_source(data):
    """Name and compressed content of each volume, with what decompresses it, by name."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data)) as source:
        for member in source:
            match = re.fullmatch(r"[^/]*/tests/([^/]*)/(image[^/]*|journal)\.(gz|bz2)", member.name)
            if not match or not member.isfile():
                continue
            test, file, form = match.groups()
            data, decompress = source.extractfile(member).read(), (gzip if form == "gz" else bz2).decompress
            if file.endswith(".tar"):
                with tarfile.open(fileobj=io.BytesIO(decompress(data))) as parts:
                    found += [(f"{test}/{part.name}", parts.extractfile(part).read(), bytes) for part in parts if part.isfile()]
            else:
                found.append((test if file == "image" else f"{test}/{file}", data, decompress))
    return sorted(found, key=lambda one: one[0])


def judge(tree, name, compressed, decompress, keep):
    """Results for the forms of a volume: (form, equal|refused|wrong, why)."""
    results = []
    data = decompress(compressed)
    with tempfile.TemporaryDirectory() as scratch:
        for form in ("as it is", "repaired"):
            image = pathlib.Path(scratch, "image")
            if (name, form) in ENDLESS:
                continue
            write_sparse(image, data)
            if form == "repaired":
                run("e2fsck", "-fy", str(image))
            if run("e2fsck", "-fn", str(image)) != 0:
                continue
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                write_sparse(keep / f"{name} {form}".replace("/", " "), image.read_bytes())
            results.append((f"{name}, {form}", *compare(tree, image)))
    return results


def run(*command):
    """The exit status."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=ENVIRONMENT, check=False).returncode


def write_sparse(path, data):
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(len(data))
        for at in range(0, len(data), PIECE):
            if data[at:at + PIECE].strip(b"\0"):
                file.seek(at)
                file.write(data[at:at + PIECE])


def compare(tree, image):
    done = subprocess.run([tree, image], capture_output=True, check=False, timeout=120)
    lines = done.stdout.decode().splitlines()[1:]
    if done.returncode != 0:
        return "wrong", f"exit status {done.returncode}: {done.stderr.decode()[-300:]}"
    if lines and lines[0].startswith("refused\t"):
        return "refused", lines[0].split("\t", maxsplit=1)[1]
    return compare_lines(lines, image)


def compare_lines(lines, image):
    """As `compare`, for what TREE has printed of an image that it reads."""
    if needs_recovery(image):
        run("e2fsck", "-E", "journal_only", "-y", str(image))
    try:
        expected = Debugfs(image).table()
    except Unreadable as error:
        return "wrong", f"debugfs: {error}"
    found = {line.split("\t")[0]: line.split("\t") for line in lines}
    for path in sorted(set(found) | set(expected)):
        if found.get(path) != expected.get(path):
            return "wrong", f"{path or '/'}: {found.get(path)}, expected {expected.get(path)}"
    return "equal", ""


def needs_recovery(image):
    with open(image, "rb") as file:
        file.seek(1024 + 0x60)
        return file.read(1)[0] & 4 != 0


class Debugfs:
    """debugfs's output for a volume."""

    def __init__(self, image):
        self.image = image
        self.scratch = tempfile.TemporaryDirectory()
        self.paths = {b"": 2}
        self.stats = {}
        self.errors = ""

    def ask(self, commands):
        """debugfs's output for each of many commands. Bitmaps are not read, since no result depends on them."""
        file = pathlib.Path(self.scratch.name, "commands")
        file.write_bytes(b"".join(command + b"\n" for command in commands))
        done = subprocess.run(["debugfs", "-c", "-f", file, self.image], capture_output=True, env=ENVIRONMENT, check=False)
        self.errors += done.stderr.decode(errors="replace")
        parts = re.split(rb"^debugfs: (.*)\n", done.stdout, flags=re.MULTILINE)
        if parts[1::2] != commands:
            raise Unreadable(self.errors)
        return parts[2::2]

    def table(self):
        """The same lines that TREE prints, by path."""
        self.walk()
        inodes = sorted(set(self.paths.values()))
        stats = self.ask([b"stat <%d>" % inode for inode in inodes])
        self.stats = dict(zip(inodes, stats))
        types = {inode: self.kind(inode) for inode in inodes}
        content = [inode for inode in inodes if self.has_content(inode, types[inode])]
        self.ask([b"dump <%d> %s/%d" % (inode, self.scratch.name.encode(), inode) for inode in content])
        attributes = self.attributes(inodes)
        rows, firsts = {}, {}
        for path, inode in sorted(self.paths.items(), key=lambda one: one[0].split(b"/")):
            first = firsts.setdefault(inode, path)
            what, digest = self.what(inode, types[inode])
            rows[escape(path)] = [
                escape(path), types[inode], f"{self.number(inode, rb'Mode: +(0[0-7]*)', 8):o}",
                self.owner(inode, rb"User: *(-?\d+)"), self.owner(inode, rb"Group: *(-?\d+)"),
                self.mtime(inode), what, digest, attributes[inode], escape(first)]
        return rows

    def walk(self):
        """Finds all names, one depth after the other."""
        todo = [b""]
        while todo:
            dirs, todo = todo, []
            for path, listed in zip(dirs, self.ask([b"ls -p <%d>" % self.paths[path] for path in dirs])):
                for inode, mode, name in re.findall(rb"^/(\d+)/([0-7]{6})/-?\d+/-?\d+/([^/]*)/\d*/$", listed, re.MULTILINE):
                    child = path + b"/" + name
                    if name in (b".", b"..") or inode == b"0":
                        continue
                    self.paths[child] = int(inode)
                    if int(mode, 8) >> 12 == 0o04:
                        todo.append(child)
                if path.count(b"/") > 1000:
                    raise Unreadable("directories without end")
        # An empty one belongs to the volume, not to the tree.
        if b"/lost+found" in self.paths and not any(path.startswith(b"/lost+found/") for path in self.paths):
            del self.paths[b"/lost+found"]

    def field(self, inode, pattern):
        match = re.search(pattern, self.stats[inode], re.MULTILINE)
        if not match:
            raise Unreadable(f"inode {inode} without {pattern}: {self.errors}")
        return match.groups()

    def number(self, inode, pattern, base=10):
        return int(self.field(inode, pattern)[0], base)

    def owner(self, inode, pattern):
        """A number that debugfs prints with a sign."""
        return str(self.number(inode, pattern) % (1 << 32))

    def kind(self, inode):
        names = {b"regular": "file", b"directory": "directory", b"symlink": "link", b"FIFO": "pipe", b"socket": "socket",
                 b"character special": "character", b"block special": "block"}
        return names[self.field(inode, rb"^Inode: +\d+ +Type: ([a-zA-Z ]+?) +Mode:")[0]]

    def has_content(self, inode, kind):
        if kind == "link":
            return b"Fast link dest: " not in self.stats[inode]
        return kind == "file" and self.number(inode, rb"Size: (\d+)") <= LARGE

    def mtime(self, inode):
        seconds, extra = self.field(inode, rb"^ ?mtime: 0x([0-9a-f]+)(?::([0-9a-f]+))?")
        seconds, extra = int(seconds, 16), int(extra or b"0", 16)
        seconds = seconds - (1 << 32) * (seconds >> 31) + ((extra & 3) << 32)
        return f"{seconds}.{extra >> 2:09}"

    def what(self, inode, kind):
        """Size or target or device, and the digest of a content."""
        size = self.number(inode, rb"Size: (\d+)")
        if kind in ("character", "block"):
            major, minor = self.field(inode, rb"Device major/minor number: 0*(\d+):0*(\d+)")
            return f"{int(major)}:{int(minor)}", ""
        if kind == "link":
            if b"Fast link dest: " in self.stats[inode]:
                return escape(re.search(rb'Fast link dest: "(.*)"', self.stats[inode], re.DOTALL)[1]), ""
            return escape(self.dumped(inode)[:size]), ""
        if kind == "file":
            return str(size), (digest(self.dumped(inode)[:size]) if size <= LARGE else self.large(inode, size))
        return "", ""

    def dumped(self, inode):
        """The content; of what stands in its inode, debugfs writes all that there is room for."""
        path = pathlib.Path(self.scratch.name, str(inode))
        if not path.exists():
            raise Unreadable(f"nothing was dumped of inode {inode}")
        return path.read_bytes()

    def large(self, inode, size):
        """The digest of a file by the places of its blocks."""
        block = self.block_size()
        runs = re.findall(rb"\((\d+)(?:-(\d+))?(\[u\])?\):(\d+)(?:-\d+)?", self.stats[inode])
        pieces = {}
        with open(self.image, "rb") as file:
            for first, last, unwritten, start in runs:
                for at in range(int(first), int(last or first) + 1) if not unwritten else ():
                    file.seek((int(start) + at - int(first)) * block)
                    if at * block < size:
                        piece = pieces.setdefault(at * block // PIECE, bytearray(min(PIECE, size - at * block // PIECE * PIECE)))
                        offset = at * block % PIECE
                        piece[offset:offset + block] = file.read(block)[:len(piece) - offset]
        return digest_of((at * PIECE, bytes(piece)) for at, piece in sorted(pieces.items()))

    def block_size(self):
        with open(self.image, "rb") as file:
            file.seek(1024 + 0x18)
            return 1024 << file.read(1)[0]

    def attributes(self, inodes):
        """By inode, all attributes as TREE prints them."""
        names = []
        for inode, listed in zip(inodes, self.ask([b"ea_list <%d>" % inode for inode in inodes])):
            found = map(plain, re.findall(rb"^  (.+?) \(\d+\)", listed, re.MULTILINE))
            names += [(inode, name) for name in found if name.startswith(NAMESPACES) and name != b"system.data"]
        values = self.ask([b'ea_get -x <%d> "%s"' % one for one in names])
        table = {inode: [] for inode in inodes}
        for (inode, name), value in zip(names, values):
            value = re.search(rb" \(\d+\)(?: = ([0-9a-f ]*))?\n", value)
            if not value:
                raise Unreadable(f"inode {inode} without value of {name}")
            value = bytes.fromhex((value[1] or b"").decode())
            if name.startswith(b"system.posix_acl_"):
                value = with_nobody(value)
            table[inode].append((name, value))
        return {inode: " ".join(f"{escape(name)}={value.hex()}" for name, value in sorted(all_)) for inode, all_ in table.items()}


def plain(name):
    """The name of an attribute, which debugfs prints as numbers where it is not ASCII."""
    return bytes.fromhex(name.decode()) if re.fullmatch(rb"([0-9a-f]{2} )+", name) else name


def with_nobody(acl):
    """An access control list as returned by system calls: entries without a name have the id -1, where e2fsprogs has 0."""
    entries = [acl[at:at + 8] for at in range(4, len(acl), 8)]
    return acl[:4] + b"".join(entry if entry[0] in (2, 8) else entry[:4] + b"\xff" * 4 for entry in entries)


def digest(content):
    return digest_of((at, content[at:at + PIECE]) for at in range(0, len(content), PIECE))


def digest_of(pieces):
    found = hashlib.sha256()
    for at, piece in pieces:
        if piece.strip(b"\0"):
            found.update(at.to_bytes(8, "little") + piece)
    return found.hexdigest()


def escape(text):
    return "".join(chr(byte) if 0x21 <= byte <= 0x7e and byte != 0x25 else f"%{byte:02x}" for byte in text)


if __name__ == "__main__":
    main()
