"""Extensions of a bundle in each format, checked by e2fsck, unsquashfs, veritysetup and systemd-dissect. A machine merges them, ignores one for another system,
reboots, and unmerges them."""

import json
import subprocess

import pytest

from harness.paths import ROOT
from harness.report import case

SYSTEMD = "/usr/lib/systemd/system"
DOCUMENT = {"schema": 1, "publisher": "acme", "name": "demo", "version": "1.0.0", "description": "A service.", "os": ["debian-12", "debian-13"],
            "arch": ["amd64"],
            # What concerns a unit of the base has to be named; a directory above it does not suffice.
            "asks": {"paths": ["/usr", f"{SYSTEMD}/multi-user.target.d/10-upheld.conf"]}}
LAYER = {
    "name": "acme.demo", "version": "1", "description": "A service.", "os": ["debian-12", "debian-13"],
    "files": {
        f"{SYSTEMD}/upheld.service": {"content": ["[Service]", "ExecStart=/usr/bin/sleep infinity"]},
        f"{SYSTEMD}/wanted.service": {"content": ["[Service]", "ExecStart=/usr/bin/sleep infinity"]},
        f"{SYSTEMD}/multi-user.target.d/10-upheld.conf": {"content": ["[Unit]", "Upholds=upheld.service"]},
        "/usr/share/demo/hello": {"content": "hello\n"},
    },
    "symlinks": {f"{SYSTEMD}/multi-user.target.wants/wanted.service": "../wanted.service"},
}
# What a machine says of it, in one line; the disks of extensions come after its own and that of cloud-init.
STATE = "$(systemd-sysext status --json=short | tr -d ' ') $(systemctl is-active upheld wanted | tr '\\n' ' ') $(cat /usr/share/demo/hello) $(touch /opt/x && echo writable)"
# Checks are asked until the machine is off: what they do while it stops, it would find half done when it starts again.
ONCE = "test -e /run/told || {{ {}; touch /run/told; }}"
# Half a minute for the unit, so that a machine that never starts it says so.
UPHELD = "for try in $(seq 30); do systemctl -q is-active upheld && break; sleep 1; done; echo STATE " + STATE + " > /dev/console"
DISKS = {"/dev/vdc": "acme-demo.raw", "/dev/vdd": "other.raw", "/dev/vde": "small.raw"}
FIRST = ONCE.format("mkdir -p /var/lib/extensions; cd /var/lib/extensions; " + "".join(f"test -e {name} || {{ cat {disk} > new; mv new {name}; }}; " for disk, name in DISKS.items())
                    + f"test -e plain || tar -xf /dev/vdf; systemctl enable systemd-sysext.service; systemd-sysext refresh; {UPHELD}; sync")
SECOND = ONCE.format(f"{UPHELD}; systemd-sysext unmerge; echo AFTER $(ls -d /usr/share/demo /usr/bin/sh 2>/dev/null) > /dev/console")


class Work:
    def __init__(self, vmbake, folder):
        self.vmbake, self.folder = vmbake, folder

    def run(self, *command):
        return subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True, check=False)

    def must(self, *command):
        done = self.run(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def extension(self, out, *more):
        return self.run(self.vmbake, "bundle", "sysext", "demo.oci", "-o", out, "--offline", "--store", "store", "--sources", ROOT / "manifests/sources.json",
                        "--trust", ROOT / "trust", *more)

    def boot(self, image, name, command):
        disks = [word for disk in (*DISKS.values(), "plain.tar") for word in ("-drive", f"file={disk},if=virtio,format=raw,readonly=on")]
        done = self.run(self.vmbake, "boot", image, "--disk", "machine.qcow2", "--network", "isolated", "--timeout", "1200", "--log", f"{name}.log",
                        "--check", f"run={command}", "--", *disks)
        case(f"the {name} boot comes to its end", done.returncode == 0, done.stdout + done.stderr)
        return (self.folder / f"{name}.log").read_text(errors="replace")


def packed(work):
    layers = work.folder / "demo/layers/acme.demo"
    layers.mkdir(parents=True)
    (work.folder / "demo/bundle.json").write_text(json.dumps(DOCUMENT))
    (layers / "layer.json").write_text(json.dumps(LAYER))
    work.must(work.vmbake, "key", "generate", "--out", "acme")
    work.must(work.vmbake, "bundle", "pack", "demo", "-o", "demo.oci", "--key", "acme.key", "--offline", "--store", "store")
    work.must(work.vmbake, "bundle", "trust", "demo.oci", "--key", "acme.pub", "--yes")


def is_extension(work, name):
    dissected = work.run("systemd-dissect", name).stdout
    case(f"systemd takes {name} for an extension of a system", "\u2713 extension for system" in dissected and "VERSION_ID=13" in dissected, dissected)
    case(f"and finds the hash tree of {name}", " external " in dissected, dissected)


def judged(work):
    done = work.extension("acme-demo.raw", "--verity")
    case("a bundle becomes an extension", done.returncode == 0, done.stderr)
    work.extension("again/acme-demo.raw", "--verity")
    case("the same bundle gives the same bytes", work.run("cmp", "acme-demo.raw", "again/acme-demo.raw").returncode == 0)
    checked = work.run("e2fsck", "-fn", "acme-demo.raw")
    case("e2fsck finds no fault", checked.returncode == 0, checked.stdout)
    is_extension(work, "acme-demo.raw")
    done = work.extension("other.raw", "--os", "debian-12")
    case("so does it for Debian 12", done.returncode == 0, done.stderr)


def smaller(work):
    """A SquashFS and a directory have the same."""
    done = work.extension("small.raw", "--format", "squashfs", "--verity")
    case("a bundle becomes a SquashFS", done.returncode == 0, done.stderr)
    work.extension("again/small.raw", "--format", "squashfs", "--jobs", "1")
    case("which is the same elsewhere", work.run("cmp", "small.raw", "again/small.raw").returncode == 0)
    done = work.extension("plain", "--format", "dir")
    case("a bundle becomes a directory", done.returncode == 0, done.stderr)
    said = work.run("unsquashfs", "-s", "small.raw").stdout
    case("unsquashfs knows its time and its compression", "Jan  1 00:00:00 1970" in said and "Compression zstd" in said, said)
    work.must("unsquashfs", "-q", "-n", "-d", "unpacked", "small.raw")
    trees = [work.must("find", name, "-mindepth", "1", "-not", "-name", "extension-release.*", "-printf", "%P %M %T@ %l\\n").splitlines() for name in ("unpacked", "plain")]
    case("it has the files, links, modes and times of the directory", sorted(trees[0]) == sorted(trees[1]) and len(trees[0]) > 10, trees)
    contents = work.run("diff", "--recursive", "--exclude", "extension-release.*", "unpacked", "plain")
    case("and the same contents", contents.returncode == 0, contents.stdout)
    is_extension(work, "small.raw")


def verified(work, name):
    root = (work.folder / f"{name}.roothash").read_text().strip()
    return work.run("veritysetup", "verify", f"{name}.raw", f"{name}.verity", root)


def protected(work):
    """One byte that is another one does not pass the hash tree."""
    for name in "acme-demo", "small":
        done = verified(work, name)
        case(f"veritysetup verifies {name}", done.returncode == 0, done.stderr)
        image = work.folder / f"{name}.raw"
        whole = image.read_bytes()
        image.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        done = verified(work, name)
        case(f"veritysetup refuses {name} with another byte", done.returncode != 0, done.stdout)
        image.write_bytes(whole)


def merged(console):
    """A machine's report about its state."""
    return next((line for line in console.splitlines() if "STATE [" in line), console[-2000:])


def booted(work, image):
    work.must("tar", "-cf", "plain.tar", "plain")
    wanted = ('"extensions":["acme-demo","plain","small"]', "active inactive", " hello writable")
    state = merged(work.boot(image, "first", FIRST))
    case("systemd merges each form, and not the one of another system; what is upheld runs", all(words in state for words in wanted), state)
    console = work.boot(image, "second", SECOND)
    case("they are merged when the machine starts again", all(words in merged(console) for words in wanted), merged(console))
    after = next((line for line in console.splitlines() if "AFTER " in line), console[-2000:])
    case("unmerge takes them away", "AFTER /usr/bin/sh" in after, after)


@pytest.fixture
def extensions(vmbake, work):
    made = Work(vmbake, work)
    packed(made)
    return made


def test_extensions(extensions):
    judged(extensions)
    smaller(extensions)
    protected(extensions)


@pytest.mark.slow
def test_machine_merges_extensions(extensions, baked):
    judged(extensions)
    smaller(extensions)
    booted(extensions, baked)
