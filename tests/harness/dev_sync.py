"""A developer with changed layers, and a node that `vmbake dev sync` can log in to."""

import json
import os
import shutil
import subprocess

from harness import life
from harness.paths import ROOT

LAYERS = ROOT / "layers"
TEMPLATE = "/opt/podplane/share/templates/containerd-config.toml"
UNIT = "/usr/lib/systemd/system/containerd.service"
OWN = "/etc/systemd/system/own.service"
SERVICES = json.loads((LAYERS / "containerd/layer.json").read_text())["first_boot"]["services"]
STATE = "/var/lib/vmbake/sync/state.json"


class Layers:
    """A directory with copies of built-in layers, to be changed."""

    def __init__(self, folder, *names):
        self.folder, self.names = folder, names
        for name in names:
            shutil.copytree(LAYERS / name, folder / name)

    def options(self):
        return ["--layers", self.folder, *(word for name in self.names for word in ("--override", f"layers/{name}"))]

    def change(self, name, change):
        path = self.folder / name / "layer.json"
        layer = json.loads(path.read_text())
        change(layer)
        path.write_text(json.dumps(layer, indent=2))

    def file(self, name, path):
        path = self.folder / name / "files" / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def append(self, name, path, text):
        path = self.file(name, path)
        path.write_text((path.read_text() if path.exists() else "") + text)


class Developer:
    """Runs `vmbake dev sync`, with an authorized key."""

    def __init__(self, vmbake, folder, layers, before=(), name="key"):
        self.vmbake, self.folder, self.layers, self.before = vmbake, folder, layers, list(before)
        self.key = folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        self.known, self.ssh = folder / "known_hosts", []

    def command(self, target, *more):
        ssh = ["-i", self.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.known}",
               "-o", "StrictHostKeyChecking=accept-new"]
        return [str(word) for word in (*self.before, self.vmbake, "dev", "sync", target, *self.layers.options(), *more, "--", *ssh, *self.ssh)]

    def sync(self, target, *more, **options):
        """Exit code, stdout and stderr."""
        done = subprocess.run(self.command(target, *more), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
        return done.returncode, done.stdout, done.stderr

    def report(self, target, *more):
        code, printed, said = self.sync(target, "--json", *more)
        return code, json.loads(printed) if printed else {}, said


class Node(life.Node):
    """One whose sshd runs, for root and for a user with sudo."""

    def let_in(self, key):
        self.key = key
        (self.root / "etc/systemd/system/ssh.service").unlink()
        subprocess.run(["ssh-keygen", "-q", "-A", "-f", self.root], check=True)
        # As cloud-init does with --ssh-key.
        for name, home in (("root", "/root"), ("dev", "/home/dev")):
            if name == "dev":
                subprocess.run(["useradd", "--root", self.root, "--create-home", "--shell", "/bin/bash", name], check=True)
                self.put("/etc/sudoers.d/dev", b"dev ALL=(ALL) NOPASSWD: ALL\n", 0o440)
            secret = self.root / home.lstrip("/") / ".ssh"
            secret.mkdir(mode=0o700, exist_ok=True)
            self.put(f"{home}/.ssh/authorized_keys", key.with_suffix(".pub").read_bytes(), 0o600, f"{name}:{name}")
            owner = (self.root / home.lstrip("/")).stat()
            os.chown(secret, owner.st_uid, owner.st_gid)
        self.put("/etc/ssh/sshd_config.d/test.conf", b"PermitRootLogin prohibit-password\n")


def actions(report, kind):
    return {one.get("path", one.get("unit")) for one in report.get("actions", ()) if one["action"] == kind}


def change(layers):
    """A template, a unit, a file with an owner, the plan."""
    layers.append("containerd", TEMPLATE, "\n# changed by the developer\n")
    layers.append("containerd", UNIT, "# changed by the developer\n")
    layers.append("containerd", "/opt/podplane/share/own/it's.conf", "mine\n")
    layers.append("containerd", OWN, "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n")

    def more(layer):
        layer["version"] = "2"
        layer.setdefault("files", {})["/opt/podplane/share/own/it's.conf"] = {"mode": "0640", "group": "containerd"}
        layer.setdefault("symlinks", {})["/opt/podplane/share/own/link"] = "it's.conf"
        layer.setdefault("units", {}).setdefault("enable", []).append("own.service")
        layer["first_boot"].setdefault("files", []).append(
            {"path": "/opt/podplane/etc/own.txt", "mode": "0600", "content": {"text": "kind {{ VMCONFIG_KIND }}\n"}})
    layers.change("containerd", more)


def only(folder, *programs):
    """A directory with these programs alone."""
    folder.mkdir()
    for program in programs:
        (folder / program).symlink_to(shutil.which(program))
    return folder
