"""The files of an ext4 volume by debugfs, as the lines that the example program `tree` of vmbake-disk prints."""

import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

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
