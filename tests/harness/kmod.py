"""Debian's kmod in a chroot, and handmade kernel modules."""

import os
import struct
import subprocess

from harness.paths import BASE_IMAGE

SUITES = {"30": "bookworm", "34": "trixie"}
PACKAGES = {"30": ["kmod", "libkmod2", "libc6", "liblzma5", "libzstd1", "libssl3"], "34": ["kmod", "libkmod2", "libc6", "liblzma5", "libzstd1", "libssl3t64", "zlib1g"]}
MACHINES = {"amd64": 62, "arm64": 183}


def download(folder, arch, suite, *packages):
    """Downloads packages of the Debian archive; of `NAME/`, the kernel package that NAME depends on."""
    conf = subprocess.check_output([BASE_IMAGE / "apt-root.sh", folder / f"apt-{arch}-{suite}", arch, suite], text=True).strip()
    env = {**os.environ, "APT_CONFIG": conf}
    names = []
    for name in packages:
        if name.endswith("/"):
            shown = subprocess.check_output(["apt-cache", "depends", "--important", name[:-1]], env=env, text=True)
            name = next(line.split()[-1] for line in shown.splitlines() if "Depends: linux-image-" in line)
        names.append(name)
    debs = folder / f"debs-{arch}-{suite}"
    debs.mkdir()
    subprocess.run(["apt-get", "-qq", "download", *names], env=env, cwd=debs, check=True, stderr=subprocess.DEVNULL)
    return sorted(debs.iterdir())


def unpack(deb, root, *members):
    files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    subprocess.run(["tar", "x", "-C", root, "--keep-directory-symlink", "--wildcards", *members], stdin=files.stdout, check=True)
    files.wait()


def chroot(folder, release):
    """A root directory with a release of kmod."""
    root = folder / f"kmod-{release}"
    for name in "bin", "sbin", "lib", "lib64":
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for deb in download(folder, "amd64", SUITES[release], *PACKAGES[release]):
        unpack(deb, root)
    shown = subprocess.check_output(["chroot", root, "depmod", "--version"], text=True)
    assert shown.startswith(f"kmod version {release}"), shown
    return root


def linux_base(folder):
    """Debian's `linux-version`, as a command."""
    root = folder / "linux-base"
    root.mkdir()
    for deb in download(folder, "amd64", "trixie", "linux-base"):
        unpack(deb, root)
    return ["perl", "-I", root / "usr/share/perl5", root / "usr/bin/linux-version"]


def module(lines):
    """A kernel module as ELF. Lines: `undefined`, `weak`, `crc`, `string`, `version` or `info` and a value; `machine`; `stripped`."""
    values = {}
    for line in lines:
        key, _, value = line.partition(" ")
        values.setdefault(key, []).append(value.encode())
    strings, symbols = b"\0", bytes(24)
    for key, prefix, info, section in ("undefined", b"", 0x10, 0), ("weak", b"", 0x20, 0), ("crc", b"__crc_", 0x10, 0xFFF1):
        for name in values.get(key, []):
            symbols += struct.pack("<IBBHQQ", len(strings), info, 0, section, 0, 0)
            strings += prefix + name + b"\0"
    sections = [
        (b".modinfo", b"".join(text + b"\0" for text in values.get("info", []))),
        (b"__ksymtab_strings", b"".join(text + b"\0" for text in values.get("string", []))),
        (b"__versions", b"".join(struct.pack("<Q56s", 1, name) for name in values.get("version", []))),
    ]
    sections = [section for section in sections if section[1]]
    if "stripped" not in values:
        sections += [(b".symtab", symbols), (b".strtab", strings)]
    names = b"\0" + b"".join(name + b"\0" for name, _ in sections) + b".shstrtab\0"
    sections.append((b".shstrtab", names))
    body, table = b"", bytes(64)
    for name, content in sections:
        table += struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name + b"\0") + 1, 1, 0, 0, 64 + len(body), len(content), 0, 0, 1, 0)
        body += content
    machine = MACHINES[values.get("machine", [b"amd64"])[0].decode()]
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections) + 1, len(sections))
    return header + body + table
