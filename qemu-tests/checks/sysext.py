#!/usr/bin/python3
"""sysext.py VMBAKE IMAGE [--boot]: makes extensions of a bundle, and asks e2fsck and systemd-dissect about them. With --boot a machine of IMAGE merges one,
ignores one for another system, starts again, and takes it away. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed."""

import json
import pathlib
import subprocess
import sys
import tempfile

from report import case, failures

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEMD = "/usr/lib/systemd/system"
DOCUMENT = {"schema": 1, "publisher": "acme", "name": "demo", "version": "1.0.0", "description": "A service.", "os": ["debian-12", "debian-13"],
            "arch": ["amd64"], "asks": {"paths": ["/usr"]}}
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
FIRST = ("mkdir -p /var/lib/extensions; cat /dev/vdc > /var/lib/extensions/acme-demo.raw; cat /dev/vdd > /var/lib/extensions/other.raw; "
         f"systemctl enable systemd-sysext.service; systemd-sysext refresh; until systemctl -q is-active upheld; do sleep 1; done; echo STATE {STATE} > /dev/console; sync")
SECOND = f"echo STATE {STATE} > /dev/console; systemd-sysext unmerge; echo AFTER $(ls -d /usr/share/demo /usr/bin/sh 2>/dev/null) > /dev/console"


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
        disks = [word for disk in ("acme-demo.raw", "other.raw") for word in ("-drive", f"file={disk},if=virtio,format=raw,readonly=on")]
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


def judged(work):
    done = work.extension("acme-demo.raw")
    case("a bundle becomes an extension", done.returncode == 0, done.stderr)
    (work.folder / "again").mkdir()
    work.extension("again/acme-demo.raw")
    case("the same bundle gives the same bytes", work.run("cmp", "acme-demo.raw", "again/acme-demo.raw").returncode == 0)
    checked = work.run("e2fsck", "-fn", "acme-demo.raw")
    case("e2fsck finds no fault", checked.returncode == 0, checked.stdout)
    dissected = work.run("systemd-dissect", "acme-demo.raw").stdout
    case("systemd takes it for an extension of a system", "\u2713 extension for system" in dissected and "VERSION_ID=13" in dissected, dissected)
    done = work.extension("other.raw", "--os", "debian-12")
    case("so does it for Debian 12", done.returncode == 0, done.stderr)


def merged(console):
    """What a machine said of its state."""
    return next((line for line in console.splitlines() if "STATE [" in line), console[-2000:])


def booted(work, image):
    wanted = ('"extensions":["acme-demo"]', "active inactive", " hello writable")
    state = merged(work.boot(image, "first", FIRST))
    case("systemd merges it, and the other one not; what is upheld runs", all(words in state for words in wanted), state)
    console = work.boot(image, "second", SECOND)
    case("it is merged when the machine starts again", all(words in merged(console) for words in wanted), merged(console))
    after = next((line for line in console.splitlines() if "AFTER " in line), console[-2000:])
    case("unmerge takes it away", "AFTER /usr/bin/sh" in after, after)


def main(vmbake, image, *options):
    with tempfile.TemporaryDirectory(prefix="sysext.", dir="/var/tmp") as folder:
        work = Work(pathlib.Path(vmbake).resolve(), pathlib.Path(folder))
        packed(work)
        judged(work)
        if "--boot" in options:
            booted(work, pathlib.Path(image).resolve())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
