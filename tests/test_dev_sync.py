"""Sends changed layers to a baked node by `vmbake dev sync`, over a real sshd: the node runs below systemd-nspawn with its own systemd, sshd and rsync.

The tests are of one machine, in order. Needs root, ssh and rsync.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from harness import life
from harness.machine import ADDRESS
from harness.paths import ROOT
from harness.report import case

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "ssh", "rsync")]
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


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="module")
def layers(folder):
    return Layers(folder / "layers", "containerd")


@pytest.fixture(scope="module")
def image(kinds):
    return kinds / "knd.debian-13.amd64.raw"


@pytest.fixture(scope="module")
def node(image, folder):
    with Node(image, folder, "sync") as node:
        yield node


@pytest.fixture(scope="module")
def dev(vmbake, node, folder, layers):
    """A developer who can log in to the node, which is configured."""
    dev = Developer(vmbake, folder, layers, ["ip", "netns", "exec", node.network.name])
    node.prepare()
    node.let_in(dev.key)
    life.begin(node)
    case("the node is configured", node.until(lambda: node.show(life.FIRST)[life.FIRST]["ActiveState"] == "active") and node.settled(), node.failed())
    return dev


@pytest.fixture(scope="module")
def target():
    return f"root@{ADDRESS}"


def test_unchanged(node, dev, target):
    code, report, said = dev.report(target)
    case("layers as in the image: nothing is sent", code == 0 and not report["actions"] and not report["layers"] and "machine" not in report, (report, said))
    case("and nothing is left on the machine", node.get(STATE) is None)


def test_restored(node, dev, target, layers):
    """An edit of `first_boot` that is undone."""
    plan = "/opt/podplane/share/firstboot.json"
    path = layers.folder / "containerd/layer.json"
    kept = path.read_text()
    layers.change("containerd", lambda layer: layer["first_boot"].setdefault("files", []).append(
        {"path": "/opt/podplane/etc/edited.txt", "mode": "0600", "content": {"text": "edited\n"}}))
    code, report, said = dev.report(target)
    case("an edit of first_boot is sent", code == 0 and actions(report, "write") == {plan} and b"edited.txt" in node.get(plan), (code, report, said))
    path.write_text(kept)
    code, report, said = dev.report(target)
    case("so is the original", code == 0 and actions(report, "write") == {plan} and b"edited.txt" not in node.get(plan), (code, report, said))
    code, report, said = dev.report(target)
    case("then nothing is sent", code == 0 and not report["actions"], (code, report, said))
    # A unit that neither a layer nor the plan has.
    unit = "systemd-pstore.service"
    state = node.states(unit)[unit][1]
    layers.change("containerd", lambda layer: layer.setdefault("units", {}).setdefault("mask", []).append(unit))
    code, report, said = dev.report(target)
    case("a unit is masked", code == 0 and actions(report, "mask") == {unit} and node.states(unit)[unit][1] == "masked", (code, report, said))
    path.write_text(kept)
    code, report, said = dev.report(target)
    case("and restored", code == 0 and len(report["actions"]) == 1 and node.states(unit)[unit][1] == state, (code, report, said))
    code, report, said = dev.report(target)
    case("then the layer is as in the image", code == 0 and not report["layers"], (code, report, said))
    node.run("rm", STATE, "/opt/podplane/etc/edited.txt")


def test_sent(node, dev, target, layers):
    change(layers)
    before = node.invocations() if hasattr(node, "invocations") else None
    code, report, said = dev.report(target, "--dry-run")
    expected = {TEMPLATE, UNIT, "/opt/podplane/share/own/it's.conf", OWN, "/opt/podplane/share/firstboot.json"}
    case("a dry run names what differs", code == 0 and actions(report, "write") == expected and report["layers"] == ["containerd"]
         and actions(report, "enable") == {"own.service"} and actions(report, "link") == {"/opt/podplane/share/own/link"}, (report, said))
    case("and changes nothing", node.get(STATE) is None and node.get("/opt/podplane/share/own/it's.conf") is None and b"developer" not in node.get(TEMPLATE))
    code, report, said = dev.report(target)
    case("what differs is sent", code == 0 and actions(report, "write") == expected and report.get("machine") == "configured", (code, report, said))
    found = node.owned("/opt/podplane/share/own", "/opt/podplane/share/own/it's.conf", TEMPLATE, "/opt/podplane/share/firstboot.json", STATE, "/var/lib/vmbake/sync")
    case("with owner and mode", found == {"/opt/podplane/share/own": "755 root:root", "/opt/podplane/share/own/it's.conf": "640 root:containerd",
         TEMPLATE: "644 root:root", "/opt/podplane/share/firstboot.json": "644 root:root", STATE: "600 root:root",
         "/var/lib/vmbake/sync": "700 root:root"}, found)
    case("the machine is configured by them", b"changed by the developer" in (node.get("/etc/containerd/config.toml") or b"")
         and (node.get("/opt/podplane/etc/own.txt") or b"").startswith(b"kind kn"), node.run("cat", "/opt/podplane/etc/own.txt", "/etc/containerd/config.toml"))
    _, said = node.run("systemctl", "show", "-p", "NeedDaemonReload", "containerd.service")
    case("systemd knows the new unit", said.strip() == "NeedDaemonReload=no" and node.states("own.service")["own.service"] == ("active", "enabled"),
         (said, node.states("own.service")))
    if before is not None:
        case("services were restarted", node.changed(before) and not node.failed(), (before, node.failed()))
    code, report, said = dev.report(target)
    case("a second time, nothing is sent", code == 0 and report["layers"] == ["containerd"] and not report["actions"], (report, said))


def test_units(node, dev, target, layers):
    """Drop-ins of many units, a sync that was interrupted before systemd knew its units, and a unit that the layer has no longer."""
    def state():
        return json.loads(node.get(STATE))
    def invoked():
        return node.show("own.service")["own.service"]["InvocationID"]
    shared = "/etc/systemd/system/service.d/own.conf"
    layers.append("containerd", shared, "[Unit]\nDocumentation=man:true(1)\n")
    code, report, said = dev.report(target)
    case("a drop-in of all services is sent", code == 0 and actions(report, "write") == {shared}, (code, report, said))
    before = invoked()
    node.put(STATE, json.dumps(state() | {"pending": True}).encode(), 0o600)
    code, report, said = dev.report(target)
    case("what an interrupted sync may not have done is done again", code == 0 and report.get("interrupted") and not report["actions"]
         and invoked() != before and "pending" not in state(), (code, report, said))
    for path in (shared, OWN):
        layers.file("containerd", path).unlink()
    layers.change("containerd", lambda layer: layer["units"]["enable"].remove("own.service"))
    code, report, said = dev.report(target)
    _, links = node.run("find", "/etc/systemd/system", "-name", "own.service")
    case("a unit that the layer has no longer is stopped, disabled and removed", code == 0 and actions(report, "remove") == {shared, OWN}
         and node.states("own.service")["own.service"][0] == "inactive" and not links, (code, report, said, links))


def test_taken_back(node, dev, target, layers):
    """Files that are no longer in the layer, and local changes on the machine."""
    own = "/opt/podplane/share/own"
    for name in ("kept", "gone"):
        layers.append("containerd", f"{own}/{name}", f"{name}\n")
    dev.sync(target)
    node.run("sh", "-c", f"echo changed >{own}/kept")
    for name in ("kept", "gone"):
        layers.file("containerd", f"{own}/{name}").unlink()
    layers.change("containerd", lambda layer: layer["symlinks"].pop(f"{own}/link"))
    shutil.copy(LAYERS / "containerd/files" / TEMPLATE.lstrip("/"), layers.file("containerd", TEMPLATE))
    code, report, said = dev.report(target)
    case("a sent file that the layer has no longer is removed, a changed one stays",
         code == 0 and actions(report, "remove") == {f"{own}/gone", f"{own}/link"} and [one["path"] for one in report["left"]] == [f"{own}/kept"]
         and node.run("ls", own)[1].split() == ["it's.conf", "kept"] and node.get(f"{own}/kept") == b"changed\n", (report, said))
    case("a file that is as in the image again is sent again", TEMPLATE in actions(report, "write") and b"developer" not in node.get(TEMPLATE), report)
    node.run("rm", f"{own}/kept")


def test_replaced(node, dev, target, layers):
    """A sent file becomes a directory, that one a file again, then a link; and directories that sync made go with their last file."""
    place = "/opt/podplane/share/own/deep/kind"

    def kind(code, expected):
        return code == 0 and node.run("stat", "-c", "%F", place)[1].strip() == expected
    layers.append("containerd", place, "a file\n")
    code, report, said = dev.report(target)
    case("directories are made", kind(code, "regular file"), (code, report, said))
    layers.file("containerd", place).unlink()
    layers.append("containerd", f"{place}/below", "a file in a directory\n")
    code, report, said = dev.report(target)
    case("a sent file becomes a directory", kind(code, "directory") and node.get(f"{place}/below") == b"a file in a directory\n", (code, report, said))
    shutil.rmtree(layers.file("containerd", place))
    layers.append("containerd", place, "a file\n")
    code, report, said = dev.report(target)
    case("and a file again", kind(code, "regular file"), (code, report, said))
    layers.file("containerd", place).unlink()
    layers.change("containerd", lambda layer: layer["symlinks"].update({place: "elsewhere"}))
    code, report, said = dev.report(target)
    case("and a link", kind(code, "symbolic link"), (code, report, said))
    layers.change("containerd", lambda layer: layer["symlinks"].pop(place))
    layers.file("containerd", place).parent.rmdir()
    code, report, said = dev.report(target)
    case("directories that sync made go with their last file", code == 0 and actions(report, "remove-directory") == {os.path.dirname(place)}
         and node.run("ls", os.path.dirname(place))[0] != 0, (code, report, said))


def test_at_the_same_time(node, dev, target, layers):
    layers.append("containerd", TEMPLATE, "# at the same time\n")
    node.run("systemd-run", "--quiet", "--unit=holder", "flock", "/var/lib/vmbake/sync/lock", "sleep", "infinity")
    node.until(lambda: node.run("flock", "-n", "/var/lib/vmbake/sync/lock", "true")[0] != 0)
    code, printed, said = dev.sync(target)
    case("refused: another sync is running", code == 1 and not printed and "another sync of this machine is running" in said
         and "hint: wait until the other sync has finished" in said and b"at the same time" not in node.get(TEMPLATE), printed + said)
    node.systemctl("stop", "holder.service")
    code, report, said = dev.report(target)
    _, kept = node.run("ls", "/var/lib/vmbake/sync")
    case("then it goes on, and leaves no directory", code == 0 and TEMPLATE in actions(report, "write") and kept.split() == ["lock", "state.json"], (report, said, kept))


def test_elsewhere(dev, target):
    """Files of a layer were sent, and the next sync is of other layers."""
    first, dev.layers = dev.layers, Layers(dev.folder / "other-layers", "kubelet")
    code, report, said = dev.report(target)
    case("sent files of a layer that is not named are reported", code == 1 and TEMPLATE in {one["what"] for one in report["new_image"]}
         and not report["actions"], (code, report, said))
    dev.layers = first


def test_links(node, dev, target, layers):
    """Links do not lead outside of a layer's paths."""
    node.run("mkdir", "/opt/elsewhere")
    node.run("ln", "-s", "/opt/elsewhere", "/opt/linked")
    node.run("ln", "-s", "/opt/elsewhere/target", "/opt/podplane/share/own/name")
    layers.append("containerd", "/opt/linked/file", "x\n")
    layers.append("containerd", "/opt/podplane/share/own/name", "x\n")
    code, report, said = dev.report(target)
    named = {one["what"]: one["why"] for one in report["new_image"]}
    case("a link in the way is named, and exit status 1", code == 1 and named == {
        "/opt/linked/file": "/opt/linked is a symbolic link to /opt/elsewhere on the machine",
        "/opt/podplane/share/own/name": "/opt/podplane/share/own/name is a symbolic link on the machine"}, (code, report, said))
    _, said = node.run("ls", "-A", "/opt/elsewhere")
    case("nothing is written behind it", said == "", said)
    layers.file("containerd", "/opt/linked/file").unlink()
    layers.file("containerd", "/opt/podplane/share/own/name").unlink()
    moved = layers.file("containerd", UNIT)
    moved.rename(dev.folder / "unit")
    layers.change("containerd", lambda layer: layer["first_boot"].update(services=[]))
    code, report, said = dev.report(target, "--dry-run")
    case("a file of the image that the layer has no longer is named", code == 0 and UNIT in {one["path"] for one in report["left"]}
         and not actions(report, "remove"), (code, report, said))
    (dev.folder / "unit").rename(moved)
    layers.change("containerd", lambda layer: layer["first_boot"].update(services=SERVICES))
    node.run("rm", "-r", "/opt/elsewhere", "/opt/linked", "/opt/podplane/share/own/name")


def test_images(dev, target, layers):
    """Changes that require a new image."""
    path = layers.folder / "containerd/layer.json"
    kept = path.read_text()

    def more(layer):
        layer["packages"] = ["jq"]
        layer["users"] = {"extra": {"id": 1777}}
        layer["kernel_arguments"] = ["quiet"]
        layer["capabilities"] = {"/opt/podplane/share/own/it's.conf": "cap_net_raw+ep"}
        layer["setuid"] = ["/opt/podplane/share/own/it's.conf"]
    layers.change("containerd", more)
    code, printed, said = dev.sync(target)
    for what in ("packages", "users", "/etc/default/grub.d/90-containerd.cfg"):
        case(f"needs a new image: {what}", re.search(rf"needs a new image  layer containerd: {re.escape(what)}: ", printed), printed + said)
    case("what cannot be compared is named", code == 1 and "layer containerd: capabilities: " in printed and "cannot be compared; bake a new image after changing it" in printed, printed)
    path.write_text(kept)
    dev.sync(target)


def test_owned_by_machine(node, dev, target, layers):
    """Files of a layer that belong to the machine stay there, and the rest of the layer is sent."""
    paths = ("/etc/machine-id", "/etc/os-release", STATE)
    before = {path: node.get(path) for path in paths[:-1]}
    for path in paths:
        layers.append("containerd", path, "x\n")
    layers.append("containerd", TEMPLATE, "# next to files of the machine\n")
    code, report, said = dev.report(target)
    case("files of the machine are named, and the rest is sent", code == 0 and actions(report, "write") == {TEMPLATE}
         and {one["what"] for one in report["unknown"]} >= set(paths) and not report["left"], (code, report, said))
    case("files of the machine are unchanged", {path: node.get(path) for path in before} == before and node.get(STATE).startswith(b"{"), node.get(STATE))
    for path in paths:
        layers.file("containerd", path).unlink()


def test_ran(node, dev, target, layers):
    """A unit that runs without being enabled, and that a layer masks for a while."""
    unit, path = "ran.service", layers.folder / "containerd/layer.json"
    node.put(f"/usr/lib/systemd/system/{unit}", b"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n")
    node.systemctl("daemon-reload")
    node.systemctl("start", unit)
    kept = path.read_text()
    layers.change("containerd", lambda layer: layer.setdefault("units", {}).setdefault("mask", []).append(unit))
    code, report, said = dev.report(target)
    case("a running unit is masked and stopped", code == 0 and actions(report, "mask") == {unit} and node.states(unit)[unit] == ("inactive", "masked"), (code, report, said))
    path.write_text(kept)
    code, report, said = dev.report(target)
    case("and started again", code == 0 and actions(report, "start") == {unit} and node.states(unit)[unit] == ("active", "static"), (code, report, said, node.states(unit)))
    node.systemctl("stop", unit)
    node.run("rm", f"/usr/lib/systemd/system/{unit}")


def test_stopped(node, dev, target, layers):
    """Units that fail at once, instances of a template that the layer has no longer, and files of an interrupted sync."""
    folder, path = "/etc/systemd/system", layers.folder / "containerd/layer.json"
    kept, broken, template = path.read_text(), f"{folder}/broken.service", f"{folder}/mine@.service"
    unit = "[Service]\nExecStart={}\n[Install]\nWantedBy=multi-user.target\n"
    layers.append("containerd", broken, unit.format("/nonexistent"))
    layers.append("containerd", template, unit.format("/usr/bin/sleep infinity"))
    layers.change("containerd", lambda layer: layer.setdefault("units", {}).setdefault("enable", []).append("broken.service"))
    code, _, said = dev.sync(target)
    case("a unit that fails at once is named", code == 1 and "start broken.service" in said and "hint: see `journalctl" in said, said)
    layers.file("containerd", broken).write_text(unit.format("/usr/bin/sleep infinity"))
    code, report, said = dev.report(target)
    case("and started after it is repaired", code == 0 and node.states("broken.service")["broken.service"][0] == "active", (code, report, said))
    node.systemctl("start", "mine@a.service")
    node.run("mkdir", "/var/lib/vmbake/sync/vmbake-sync-old")
    node.run("touch", "-d", "10 minutes ago", "/var/lib/vmbake/sync/vmbake-sync-old")
    for name in (broken, template):
        layers.file("containerd", name).unlink()
    path.write_text(kept)
    code, report, said = dev.report(target)
    states = node.run("systemctl", "list-units", "--all", "--plain", "--no-legend", "mine@*", "broken.service")[1]
    case("instances of a template that the layer has no longer are stopped", code == 0 and not states.strip(), (code, report, said, states))
    case("files of an interrupted sync are removed", "old" not in node.run("ls", "/var/lib/vmbake/sync")[1])


def test_sockets(node, dev, target, layers):
    """A socket whose service runs, a slice that cannot be restarted, links of an enabled unit that changes, and a unit that is masked and then gone."""
    folder, path = "/usr/lib/systemd/system", layers.folder / "containerd/layer.json"
    kept, slices = path.read_text(), "/etc/systemd/system/system.slice.d/mine.conf"

    def write(name, text):
        layers.file("containerd", name).write_text(text)

    def wants(unit):
        return node.run("find", "/etc/systemd/system", "-name", unit)[1].split()
    layers.append("containerd", slices, "[Slice]\nMemoryMin=1M\n")
    layers.append("containerd", f"{folder}/mine.socket", "[Socket]\nListenStream=/run/mine.sock\n[Install]\nWantedBy=sockets.target\n")
    layers.append("containerd", f"{folder}/mine.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nAlso=mine.socket\n")
    layers.append("containerd", f"{folder}/gone.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
    layers.change("containerd", lambda layer: layer["units"].update(enable=["mine.service", "gone.service"]))
    code, report, said = dev.report(target)
    case("a unit that enables another one is enabled", code == 0 and wants("mine.socket") and node.states("mine.service")["mine.service"][0] == "active",
         (code, report, said))
    code, report, said = dev.report(target)
    case("a second time, nothing is done", code == 0 and not report["actions"], (code, report, said))
    # A socket can only be started before its service.
    for command in (["stop", "mine.service"], ["start", "mine.socket"], ["start", "mine.service"]):
        node.systemctl(*command)
    write(f"{folder}/mine.socket", "[Socket]\nListenStream=/run/mine.sock\nBacklog=9\n[Install]\nWantedBy=sockets.target\n")
    write(f"{folder}/gone.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=basic.target\n")
    code, report, said = dev.report(target)
    case("a socket is restarted, with its service", code == 0 and all(node.states(f"mine.{kind}")[f"mine.{kind}"][0] == "active" for kind in ("socket", "service")),
         (code, report, said))
    case("an enabled unit is linked where its file says now", wants("gone.service") == ["/etc/systemd/system/basic.target.wants/gone.service"], wants("gone.service"))
    layers.change("containerd", lambda layer: layer["units"].update(enable=[], mask=["gone.service"], disable=["mine.service"]))
    code, report, said = dev.report(target)
    case("a unit is masked, another one disabled", code == 0 and node.states("gone.service")["gone.service"] == ("inactive", "masked"), (code, report, said))
    for name in (slices, f"{folder}/mine.socket", f"{folder}/mine.service", f"{folder}/gone.service"):
        layers.file("containerd", name).unlink()
    path.write_text(kept)
    code, report, said = dev.report(target)
    left = [link for unit in ("mine.socket", "mine.service", "gone.service") for link in wants(unit)]
    case("nothing of units that are gone is left", code == 0 and not left, (code, report, said, left))


def test_interrupted(node, dev, target, layers):
    """A file that an interrupted sync may or may not have replaced is still known as sent."""
    own = "/opt/podplane/share/own/again"
    layers.append("containerd", own, "first\n")
    dev.sync(target)
    state = json.loads(node.get(STATE))
    sent = state["files"][own]
    sent.update(earlier=[sent["digest"]], digest=f"sha256:{'0' * 64}")
    node.put(STATE, json.dumps(state | {"pending": True}).encode(), 0o600)
    layers.file("containerd", own).unlink()
    code, report, said = dev.report(target)
    case("it is removed", code == 0 and not report["left"] and actions(report, "remove") == {own}, (code, report, said))
    owner = layers.folder / "containerd/layer.json"
    kept = owner.read_text()
    layers.append("containerd", "/opt/theirs/file", "x\n")

    def more(layer):
        layer.setdefault("users", {})["theirs"] = {"id": 1778}
        layer.setdefault("directories", {})["/opt/theirs"] = {"owner": "theirs", "mode": "0755"}
    layers.change("containerd", more)
    code, report, said = dev.report(target)
    case("a directory of a user that is not there needs a new image", code == 1 and "/opt/theirs/file" in {one["what"] for one in report["new_image"]}, (report, said))
    owner.write_text(kept)
    shutil.rmtree(layers.file("containerd", "/opt/theirs"))
    code, report, said = dev.report(target)
    case("then nothing is left to do", code == 0 and not report["new_image"], (code, report, said))


def test_failing(node, dev, target, layers):
    """A failing configuration is reported, and retried after the layer is fixed."""
    path = layers.folder / "containerd/layer.json"
    kept = path.read_text()
    layers.change("containerd", lambda layer: layer["first_boot"].setdefault("checks", []).append({"that": "''", "otherwise": "the developer said so"}))
    code, _, said = dev.sync(target)
    case("a failing configuration is told", code == 1 and "the developer said so" in said and "firstboot configure" in said, said)
    case("the machine keeps that it is not done", json.loads(node.get(STATE)).get("pending") is True, node.get(STATE))
    path.write_text(kept)
    code, report, said = dev.report(target)
    case("the right layer repairs it", code == 0 and report["machine"] == "configured" and "pending" not in json.loads(node.get(STATE)), (report, said))


def test_watched(node, dev, target, layers):
    with subprocess.Popen(dev.command(target, "--watch"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as watcher:
        try:
            layers.append("containerd", TEMPLATE, "# while it is watched\n")
            case("--watch sends a change", node.until(lambda: b"while it is watched" in node.get("/etc/containerd/config.toml")))
            (layers.folder / "containerd/layer.json").rename(layers.folder / "aside")
            layers.append("containerd", TEMPLATE, "# and goes on\n")
            (layers.folder / "aside").rename(layers.folder / "containerd/layer.json")
            case("and goes on after a mistake", node.until(lambda: b"and goes on" in node.get("/etc/containerd/config.toml")))
        finally:
            watcher.send_signal(signal.SIGINT)


def test_refusals(node, dev, target, layers):
    def refused(name, expected, hint, target=target, more=(), **options):
        code, printed, said = dev.sync(target, *more, **options)
        case(f"refused: {name}", code == 1 and not printed and expected in said and f"hint: {hint}" in said, printed + said)

    refused("nothing listens", "Connection refused", "check the port and that the machine has booted", f"root@{ADDRESS}:2222")
    for option in (["-l", "other"], ["-o", "User=other"], ["-oHostName=elsewhere"]):
        dev.ssh = option
        refused(f"{' '.join(option)} contradicts the address", f"{target}: expected ", "set user, host and port only in the address")
    for option in ('Ho"stName" elsewhere', "=HostName elsewhere", '"" HostName=elsewhere'):
        dev.ssh = ["-o", option]
        refused(f"-o {option}", "expected an option of ssh after `--`", "name the machine before `--`")
    dev.ssh = []
    installed = "/opt/podplane/share/vmconfig-installed.json"
    before = node.get(installed)
    layers.append("containerd", installed, "x\n")
    code, printed, said = dev.sync(target)
    case("refused: the manifest in a layer", code == 1 and not printed and f'path "{installed}" is written by the bake itself' in said
         and node.get(installed) == before, printed + said)
    layers.file("containerd", installed).unlink()
    refused("another kind", "expected a machine of kind other, found kind kn", "name a machine of that kind", more=("--kind", "other"))
    layers.append("containerd", TEMPLATE, "# for a file to be sent\n")
    refused("no rsync here", "cannot run rsync", "install the package rsync", env={**os.environ, "PATH": str(only(dev.folder / "bin", "ssh", "ip"))})

    def without(path, name, expected, hint):
        node.run("mv", path, f"{path}.away")
        refused(name, expected, hint)
        node.run("mv", f"{path}.away", path)

    without("/usr/bin/rsync", "no rsync on the machine", "rsync is not installed", "require the layer `rsync`")
    without("/opt/podplane/bin/firstboot", "not a machine of vmbake", "/opt/podplane/bin/firstboot is missing", "dev sync works only on machines that were booted from an image")
    without("/opt/podplane/share/vmbake-origin.json", "no record", "vmbake-origin.json is missing", "dev sync works only on machines")
    node.run("mount", "--bind", "/opt/podplane/share", "/opt/podplane/share")
    node.run("mount", "-o", "remount,bind,ro", "/opt/podplane/share")
    refused("a read-only file system", "Read-only file system", "the machine's file system is read-only")
    node.run("umount", "/opt/podplane/share")
    code, report, said = dev.report(target)
    case("then it goes on", code == 0 and TEMPLATE in actions(report, "write") and report["machine"] == "configured", (report, said))

    user = target.replace("root@", "dev@")
    layers.append("containerd", TEMPLATE, "# by a user with sudo\n")
    code, report, said = dev.report(user)
    case("a user with sudo sends files, too", code == 0 and b"with sudo" in node.get(TEMPLATE) and node.owned(TEMPLATE) == {TEMPLATE: "644 root:root"}, (report, said))
    node.run("rm", "/etc/sudoers.d/dev")
    refused("a user without sudo", "sudo: ", "log in as root, or as a user whose sudo needs no password", user)
    (dev.folder / "other").mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dev.folder / "other/key"], check=True)
    key = (dev.folder / "other/key.pub").read_text().split()
    kept = dev.known.read_text()
    dev.known.write_text(f"{ADDRESS} {key[0]} {key[1]}\n")
    refused("another host key", "REMOTE HOST IDENTIFICATION HAS CHANGED", "if the machine was replaced, remove its old key")
    dev.known.write_text(kept)


def test_qemu(vmbake, image, folder):
    """A machine of `vmbake boot`, found by its image. It has no settings, and its login is the image's user."""
    layers = Layers(folder / "qemu-layers", "containerd")
    dev = Developer(vmbake, folder, layers, name="qemu")
    code, _, said = dev.sync(image)
    case("refused: an image that does not run", code == 1 and "no running machine of `vmbake boot`" in said and "hint: start it" in said, said)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [vmbake, "boot", image, "--ssh-key", dev.key.with_suffix(".pub"), "--forward", f"{port}:22", "--network", "isolated", "--firmware", "direct"]
    with open(folder / "console.log", "wb") as log, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as qemu:
        try:
            end = time.monotonic() + 1200
            while (answer := dev.sync(image))[0] != 0 and time.monotonic() < end:
                time.sleep(5)  # the machine boots
            case("qemu: layers as in the image", answer[0] == 0 and "nothing to send" in answer[1], answer)
            change(layers)
            code, report, said = dev.report(image)
            case("qemu: what differs is sent; the machine waits for its settings", code == 0 and TEMPLATE in actions(report, "write")
                 and report["machine"] == "waiting", (code, report, said))
            ssh = ["ssh", "-i", dev.key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-p", str(port), "debian@127.0.0.1"]
            done = subprocess.run([*ssh, f"sudo stat -c %a:%U:%G {TEMPLATE} \"/opt/podplane/share/own/it's.conf\"; sudo tail -n 1 {TEMPLATE}"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            case("qemu: with owner and mode", done.stdout == "644:root:root\n640:root:containerd\n# changed by the developer\n", done)
            code, report, said = dev.report(image)
            case("qemu: a second time, nothing is sent", code == 0 and not report["actions"], (code, report, said))
        finally:
            qemu.terminate()
