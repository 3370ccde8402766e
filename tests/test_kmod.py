"""Indexes of kernel modules that vmbake writes, compared with those of depmod of Debian 12 and 13: every byte for kernels of the archive, and a transcript
of depmod and modprobe with handmade modules, which the tests of `src/kmod` replay; `VMBAKE_RENEW=1` writes it anew. Needs root, for chroot,
and the Debian archive. Slow: all kernels but one."""

import hashlib
import os
import shutil

import pytest

from harness import kmod
from harness.paths import ROOT
from harness.run import must, run

pytestmark = pytest.mark.needs("root", "apt-get")

TRANSCRIPT = ROOT / "src/kmod/tests/transcript.txt"
VERSION = "6.1.0-9-amd64"
MODULES = f"/lib/modules/{VERSION}"
KERNELS = [("amd64", "trixie", ["linux-image-amd64/", "linux-image-rt-amd64/"]), ("arm64", "trixie", ["linux-image-arm64/", "linux-image-cloud-arm64/"]),
           ("amd64", "bookworm", ["linux-image-amd64/", "linux-image-cloud-amd64/"]), ("arm64", "bookworm", ["linux-image-cloud-arm64/"]),
           ("amd64", "bookworm-backports", ["linux-image-cloud-amd64/"])]
# Files of a kernel that depmod does not write.
INPUTS = {"modules.order", "modules.builtin", "modules.builtin.modinfo", "modules.builtin.ranges"}


@pytest.fixture(scope="module")
def chroots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kmod")
    return {release: kmod.chroot(folder, release) for release in kmod.SUITES}


@pytest.fixture(scope="module")
def linux_version(tmp_path_factory):
    return kmod.linux_base(tmp_path_factory.mktemp("linux-base"))


def lines_of(text):
    return text.removesuffix("\n").split("\n") if text else []


def shown(name, content):
    """Content as lines; of a binary file, its length and digest."""
    if name.endswith(".bin"):
        return [f"{len(content)} bytes, {hashlib.sha256(content).hexdigest()}"]
    return lines_of(content.decode())


def recorded(lines):
    return "".join(f"|{line}\n" for line in lines)


def clear(root):
    for folder in "lib/modules", "etc/depmod.d", "usr/lib/depmod.d", "etc/modprobe.d", "usr/lib/modprobe.d", "boot", "opt":
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / MODULES.lstrip("/")).mkdir(parents=True)


def write(root, word, name, given):
    path = root / (name if name.startswith("/") else f"{MODULES}/{name}").lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(given)
    contents = {"put": lambda: f"{text}\n".encode(), "bare": text.encode, "module": lambda: kmod.module(given), "fields": lambda: "".join(f"{line}\0" for line in given).encode()}
    path.write_bytes(contents[word]())


def depmod(root, earlier, *options):
    """The output of depmod, and the files that it wrote with another content than the last time."""
    directory = root / MODULES.lstrip("/")
    before = {path: path.stat().st_ino for path in directory.glob("modules.*")}
    done = run("chroot", root, "depmod", *options, VERSION)
    text = f"status {done.returncode}\n"
    if done.returncode == 0:
        text += recorded(line for line in lines_of(done.stderr.replace("depmod: ", "")) if line)
    for path in sorted(directory.glob("modules.*")):
        if before.get(path) != path.stat().st_ino:
            content = path.read_bytes()
            if earlier.get(path.name) != content:
                text += f"file {path.name}\n" + recorded(shown(path.name, content))
            earlier[path.name] = content
    return text


def query(root, word, arguments):
    program = {"modprobe": ["modprobe", "--set-version", VERSION, "--show-depends"], "resolve": ["modprobe", "--set-version", VERSION, "--resolve-alias"],
               "modinfo": ["modinfo", "-k", VERSION, "-F"]}[word]
    done = run("chroot", root, *program, *arguments)
    return f"status {done.returncode}\n" + recorded(lines_of(done.stdout))


def replay(chroots, linux_version, transcript):
    """The transcript with the current results of the programs."""
    made, lines, earlier = "", lines_of(transcript), {}
    while lines:
        line, given = lines.pop(0), []
        while lines and lines[0].startswith("|"):
            given.append(lines.pop(0)[1:])
        word, _, rest = line.partition(" ")
        if word in ("status", "file", "sorted"):
            continue
        made += line + "\n" + recorded(given)
        if word == "case":
            for root in chroots.values():
                clear(root)
        elif word == "depmod":
            made += depmod(chroots[rest], earlier)
        elif word == "sort":
            made += "sorted\n" + recorded(lines_of(must(*linux_version, "sort", *given)))
        elif word == "errsyms":
            made += depmod(chroots[rest], earlier, "-e", "-F", "/boot/System.map")
        elif word in ("modprobe", "resolve", "modinfo"):
            made += query(chroots[rest], word, given)
        elif word in ("put", "bare", "module", "fields"):
            for root in chroots.values():
                write(root, word, rest, given)
        else:
            assert word in ("#", "refuse"), line
    return made


def test_transcript(chroots, linux_version):
    transcript = TRANSCRIPT.read_text()
    made = replay(chroots, linux_version, transcript)
    if os.environ.get("VMBAKE_RENEW"):
        TRANSCRIPT.write_text(made)
    assert made == transcript


def compare_requests(real, examples, version, target):
    """Compares the output of modprobe for each module of the kernel, and for some of their aliases."""
    modules = [path.name.split(".")[0] for path in sorted(target.rglob("*.ko*"))]
    lines = [line.split()[1] for line in (target / "modules.alias").read_text().splitlines()[1:]]
    requests = modules + [alias.replace("*", "7") for alias in lines if "[" not in alias][::20]
    for options in [], ["--ignore-install"]:
        expected = must("chroot", real, "modprobe", "--set-version", version, "--show-depends", "--all", *options, *requests)
        found = must(examples / "modprobe", real, version, *options, input="\n".join(requests))
        assert [line for line in found.splitlines() if line.startswith(("insmod ", "builtin "))] == expected.splitlines()


def compare(chroots, examples, debs, work):
    """Compares the indexes of each kernel with those of each release of depmod."""
    for deb in debs:
        kernel = work / deb.stem
        kernel.mkdir()
        kmod.unpack(deb, kernel, "./lib/modules/*" if "bookworm" in str(deb) else "./usr/lib/modules/*")
        source = next(path for path in kernel.rglob("modules.order")).parent
        version = source.name
        root = work / "root"
        (root / "lib/modules").mkdir(parents=True)
        source.rename(root / "lib/modules" / version)
        for release, real in chroots.items():
            clear(real)
            target = real / "lib/modules" / version
            must("cp", "-al", root / "lib/modules" / version, target)
            (work / "ours").mkdir()
            must(examples / "depmod", release, root, version, work / "ours")
            assert must("chroot", real, "depmod", version) == ""
            expected = {path.name: path.read_bytes() for path in target.glob("modules.*") if path.name not in INPUTS}
            found = {path.name: path.read_bytes() for path in (work / "ours").iterdir()}
            assert found.keys() == expected.keys(), (deb, release)
            assert [name for name in expected if found[name] != expected[name]] == [], (deb, release)
            assert len(expected) == (11 if release == "34" else 10)
            compare_requests(real, examples, version, target)
            shutil.rmtree(work / "ours")
        clear(real)
        shutil.rmtree(root)
        shutil.rmtree(kernel)


@pytest.mark.slow
def test_cloud_kernel(chroots, examples, work):
    compare(chroots, examples, kmod.download(work, "amd64", "trixie", "linux-image-cloud-amd64/"), work)


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "suite", "packages"), KERNELS)
def test_kernels(chroots, examples, work, arch, suite, packages):
    compare(chroots, examples, kmod.download(work, arch, suite, *packages), work)
