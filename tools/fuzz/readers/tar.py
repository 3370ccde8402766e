"""Tar archives: vmbake's tree compared with GNU tar's, both with owners, devices and extended attributes.

Exempt are the owner, mode and time of directories that are there when they come, as members before them are below them or are the same: they keep
what they have, as dpkg leaves it; properties that an archive does not have: directories that are not members have the time at which tar
unpacks; the records of times that no image holds, which only tar looks at; and attributes of namespaces that the kernel does not have: tar cannot
set them, and no volume is written with them. Archives about which tar reports an error count as refused by it.
"""

import codecs
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import time

from harness.debugfs import digest, escape

EXAMPLE = "archive"
BLOCK = 512
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
FORMATS = ("gnu", "pax", "ustar", "v7", "oldgnu")
# Offset and bytes of the fields of a header, ustar's and GNU's.
FIELDS = {
    "name": (0, 100), "mode": (100, 8), "uid": (108, 8), "gid": (116, 8), "size": (124, 12), "mtime": (136, 12), "checksum": (148, 8),
    "type": (156, 1), "target": (157, 100), "magic": (257, 6), "version": (263, 2), "uname": (265, 32), "gname": (297, 32),
    "major": (329, 8), "minor": (337, 8), "prefix": (345, 155), "gnu times": (345, 24), "gnu offset": (369, 12), "gnu sparse": (386, 96),
    "gnu extended": (482, 1), "gnu size": (483, 12), "end": (500, 12),
}
NAMES = (b"a", b"a/b", b"a/file", b"./a", b"a/", b"a//b", b"a/./b", b"new", b"new/x", b"new/", b"../x", b"a/../x", b"/abs", b"a/b\0c", b"\xff\xfe",
         b"x" * 100, b"y/" * 50, b"with space", b"line\nend", b"a\\b", b"", b".", b"..", b"./", b"a/file/x", b"a/link/x", b"z" * 99)
NAMESPACES = ("user.", "trusted.", "security.", "system.")
TYPES = b"0123456777gxLKSDMVNAX\0\0 0155522aZ"
KEYS = (b"path", b"linkpath", b"size", b"uid", b"gid", b"mtime", b"atime", b"ctime", b"uname", b"comment", b"hdrcharset", b"SCHILY.xattr.trusted.a",
        b"SCHILY.xattr.trusted.a\0b", b"SCHILY.xattr.", b"SCHILY.acl.access", b"GNU.sparse.major", b"GNU.sparse.name", b"GNU.sparse.size", b"RHT.security.selinux",
        b"LIBARCHIVE.xattr.trusted.a", b"SCHILY.dev", b"SCHILY.realsize", b"GNU.sparse.map", b"SCHILY.fflags")
VALUES = (b"0", b"1", b"5", b"512", b"-1", b"1.5", b"-1.25", b"1.", b".5", b"+7", b" 7", b"7 ", b"1.0000000019", b"07", b"0x7", b"", b"4294967296", b"99999999999",
          b"a", b"a/file", b"new", b"a\0b", b"n\xff", b"1e3", b"9223372036854775808", b"BINARY", b"2000-01-01")


def missing():
    return "" if os.geteuid() == 0 else "needs root, to unpack owners and devices"


def make_seeds(folder):
    work = folder.parent / "work"
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "file").write_bytes(b"text\n" * 300)
    (work / "a" / "empty").touch()
    (work / "a" / "link").symlink_to("file")
    os.link(work / "a" / "file", work / "a" / "b" / "other")
    os.mkfifo(work / "a" / "pipe")
    (work / "a" / "b" / "program").write_bytes(b"#!/bin/sh\n")
    (work / "a" / "b" / "program").chmod(0o4755)
    with open(work / "holes", "wb") as file:
        for at in (10_000, 200_000):
            file.seek(at)
            file.write(b"data")
        file.truncate(300_000)
    long = work / "long" / ("d" * 60) / ("e" * 60)
    long.mkdir(parents=True)
    (long / "name").write_bytes(b"1")
    (long / "far").symlink_to("f" * 150)
    run = ["tar", "-C", work, "--sort=name", "--numeric-owner", "--owner=1000", "--group=50", "--mtime=@1600000000.25"]
    pax = "--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f"
    for kind in FORMATS:
        more = [pax] if kind == "pax" else []
        tar(*run, *more, f"--format={kind}", "-cf", folder / kind, "a")
        if kind not in ("v7", "ustar"):
            tar(*run, *more, f"--format={kind}", "-cf", folder / f"{kind}-long", "long", "a/file")
    for kind, version in (("gnu", ""), ("pax", "0.0"), ("pax", "0.1"), ("pax", "1.0")):
        more = [pax, f"--sparse-version={version}"] if version else []
        tar(*run, *more, f"--format={kind}", "-S", "-cf", folder / f"sparse-{kind}{version}", "holes", "a/file")
    os.setxattr(work / "a" / "file", "trusted.one", b"1\0\n2")
    tar(*run, pax, "--format=pax", "--xattrs", "--xattrs-include=trusted.*", "-cf", folder / "xattrs", "a")
    shutil.rmtree(work)


def tar(*command):
    # 2: a format of which it had to leave a pipe out.
    done = subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode in (0, 2), command


def make(random, seeds, path):
    name, data = random.choice(seeds)
    members = split(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choice((field, field, field, field, flip, records, records, add, order))(random, members)
    path.write_bytes(end(random, b"".join(bytes(head) + bytes(body) for head, body in members)))


def split(data):
    """Headers with the blocks that follow each; the last has the zeros of the end."""
    members, at = [], 0
    while at < len(data):
        head = bytearray(data[at:at + BLOCK])
        size = int(head[124:135].strip(b"\0 ") or b"0", 8) if any(head) else 0
        size = -(-size // BLOCK) * BLOCK
        # Ten blocks of zeros are as good as the twenty of a record.
        members.append((head, bytearray(data[at + BLOCK:at + BLOCK + size])))
        at += BLOCK + size
        if not any(head):
            break
    return [*members, (bytearray(BLOCK), bytearray())]


def seal(head):
    """Corrects the checksum of a header."""
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)


def some(random, members):
    found = [member for member in members if any(member[0])]
    return random.choice(found) if found else members[0]


def field(random, members):
    head, _ = some(random, members)
    name = random.choice((*FIELDS, "name", "size", "type", "type", "mtime", "target"))
    at, width = FIELDS[name]
    if name == "type":
        head[at] = random.choice(TYPES)
    elif name == "magic":
        head[257:265] = random.choice((b"ustar\x0000", b"ustar  \0", b"\0" * 8, b"ustar\0\0\0", b"ustar 00"))
    elif name in ("name", "target", "prefix", "uname", "gname"):
        head[at:at + width] = random.choice(NAMES)[:width].ljust(width, b"\0")
        if random.random() < 0.2:
            head[at + random.randrange(width)] = random.randrange(256)
    else:
        head[at:at + width] = number(random, width)[:width].ljust(width, b"\0")
    if name != "checksum":
        seal(head)


def number(random, width):
    """A number as this or that tar writes it, or as none does."""
    value = random.choice((0, 1, 5, 511, 512, 513, 1500, 0o777, 0o4755, 0o100644, 65535, 1 << 21, 1 << 31, (1 << 33) - 1, random.getrandbits(20)))
    return random.choice((
        lambda: b"%0*o\0" % (width - 1, value), lambda: b"%0*o" % (width, value), lambda: b"%0*o " % (width - 1, value),
        lambda: b" %o " % value, lambda: b"%o\0junk" % value, lambda: b"%o 9" % value, lambda: b"",
        lambda: b" " * width, lambda: b"\x80" + value.to_bytes(max(width - 1, 7), "big"), lambda: b"\xff" * (width - 1) + bytes([value & 255]),
        lambda: b"\x80" + b"\x01" * (width - 1), lambda: b"%d" % -value, lambda: b"0x%x" % value, lambda: b"8" * (width - 1), lambda: b"+" + b"Ab/" * 3,
    ))()


def flip(random, members):
    head, _ = some(random, members)
    head[random.randrange(BLOCK)] = random.randrange(256)
    seal(head)


def record(random):
    key, value = random.choice(KEYS), random.choice(VALUES)
    text = b" " + key + b"=" + value + b"\n"
    length = len(text) + 1
    while len(b"%d" % length) + len(text) != length:
        length += 1
    if random.random() < 0.1:
        length += random.choice((-1, 1, 10))
    return b"%d" % length + text


def extend(head, body, text):
    """Sets the contents of an extended header to `text`."""
    head[124:136] = b"%011o\0" % len(text)
    seal(head)
    body[:] = text.ljust(-(-len(text) // BLOCK) * BLOCK, b"\0")


def records(random, members):
    """Changes the contents of an extended header, or creates one."""
    found = [member for member in members if member[0][156] in b"xg"]
    if not found or random.random() < 0.3:
        return add(random, members)
    head, body = random.choice(found)
    text = bytes(body).rstrip(b"\0")
    if random.random() < 0.7:
        new = record(random)
        extend(head, body, random.choice((text + new, new + text, new)))
    elif body:
        body[random.randrange(len(text) or 1)] = random.randrange(256)


def add(random, members):
    """A header that says something of the next one."""
    head, body = bytearray(members[0][0]), bytearray()
    if not any(head):
        return
    kind = random.choice(b"xxxgLK")
    head[156] = kind
    head[0:100] = b"extended".ljust(100, b"\0")
    name = random.choice(NAMES) + random.choice((b"\0", b"", b"\0x"))
    extend(head, body, b"".join(record(random) for _ in range(random.choice((1, 2)))) if kind in b"xg" else name)
    members.insert(random.randrange(len(members)), (head, body))


def order(random, members):
    """Members that come twice, not at all, or at another place; blocks of zeros between them."""
    first, second = (random.randrange(len(members)) for _ in range(2))
    head, body = members[first]
    random.choice((
        lambda: members.insert(second, (bytearray(head), bytearray(body))), lambda: members.pop(first),
        lambda: members.insert(second, members.pop(first)), lambda: members.insert(second, (bytearray(BLOCK), bytearray())),
    ))()
    if not members:
        members.append((bytearray(BLOCK), bytearray()))


def end(random, data):
    """Cuts the end of some off, or adds to it."""
    chance = random.random()
    if chance < 0.05:
        return data[:random.randrange(len(data) + 1)]
    if chance < 0.1:
        return data + random.choice((b"x", b"\0" * BLOCK, data[:BLOCK]))
    return data


def accepts(path):
    return listed(path, "-tf").returncode == 0


def listed(path, *options, where=None):
    try:
        return subprocess.run(["tar", *options, path], capture_output=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT, check=False, timeout=20,
                              cwd=where)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], 1, b"", b"takes too long")


def compare(path, lines):
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        root = pathlib.Path(folder, "root")
        root.mkdir(mode=0o755)
        began = time.time() - 1
        done = unpack(path, root)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").replace(str(path), "")
            if re.search(r"(invalid|Extended header) [ac]time=", said):
                return "exempt", "a bad record of the time of the last access or change"
            if unpack(cut(path), root).returncode == 0:
                return "exempt", "tar looks at a header behind the end, and warns"
            return "THEY REFUSE", re.sub(r"\s+", " ", said)[:200]
        theirs = dict(table(root))
    late = late_directories(path)
    ours = {line.split("\t")[0]: line.split("\t") for line in lines}
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(name), theirs.get(name)
        if one:
            one[8] = " ".join(attribute for attribute in one[8].split(" ") if attribute.startswith(NAMESPACES))
        if one and other and one[1] == other[1] == "directory":
            if name in late:
                continue
            if float(other[5]) > began:
                # Not a member: nothing is said of its time.
                one, other = one[:5] + one[6:], other[:5] + other[6:]
        if one != other:
            return "DIFFERS", f"{name or '/'}: {one}, tar {other}"
    return "equal", ""


def unpack(path, root):
    # The last option is followed by the archive.
    return listed(path, "--numeric-owner", "--same-owner", "-p", "--delay-directory-restore", "--xattrs", "--xattrs-include=*", "-xf", where=root)


def cut(path):
    """The same archive without data after its first zero block."""
    members = split(path.read_bytes())
    end = next((at for at, (head, _) in enumerate(members) if not any(head)), len(members))
    short = path.with_name("cut")
    short.write_bytes(b"".join(bytes(head) + bytes(body) for head, body in members[:end]) + bytes(2 * BLOCK))
    return short


def late_directories(path):
    """Existing entries when a member of that name follows."""
    late, there = {""}, {""}
    for line in listed(path, "--quoting-style=escape", "-tf").stdout.splitlines():
        parts = [part for part in codecs.escape_decode(line)[0].split(b"/") if part not in (b"", b".")]
        names = ["".join("/" + escape(part) for part in parts[:count + 1]) for count in range(len(parts))]
        late.update(name for name in names[-1:] if name in there)
        there.update(names)
    return late


def table(root):
    """The example's output lines for unpacked files, by path."""
    firsts = {}
    names = [""] + [os.path.relpath(os.path.join(top, name), root) for top, folders, files in os.walk(root) for name in folders + files]
    for name in sorted(names, key=lambda name: os.fsencode(name).split(b"/")):
        path = root / name if name else root
        meta = os.lstat(path)
        shown = "/" + escape(os.fsencode(name)) if name else ""
        kind, what, content = describe(path, meta)
        xattrs = " ".join(f"{escape(os.fsencode(key))}={os.getxattr(path, key, follow_symlinks=False).hex()}"
                          for key in sorted(os.listxattr(path, follow_symlinks=False)))
        mtime = f"{meta.st_mtime_ns // 10**9}.{meta.st_mtime_ns % 10**9:09}"
        yield shown, [shown, kind, f"{stat.S_IMODE(meta.st_mode):o}", str(meta.st_uid), str(meta.st_gid), mtime, what, content, xattrs,
                      firsts.setdefault(meta.st_ino, shown)]


def describe(path, meta):
    mode = meta.st_mode
    if stat.S_ISDIR(mode):
        return "directory", "", ""
    if stat.S_ISLNK(mode):
        return "link", escape(os.fsencode(os.readlink(path))), ""
    if stat.S_ISREG(mode):
        return "file", str(meta.st_size), digest(path.read_bytes())
    if stat.S_ISFIFO(mode):
        return "pipe", "", ""
    return ("character" if stat.S_ISCHR(mode) else "block"), f"{os.major(meta.st_rdev)}:{os.minor(meta.st_rdev)}", ""
