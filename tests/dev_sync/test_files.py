"""Files and units of changed layers are sent to a baked node by `vmbake dev sync`, over a real sshd."""

import json
import os
import re
import shutil

import pytest

from harness.dev_sync import LAYERS, OWN, SERVICES, STATE, TEMPLATE, UNIT, Layers, actions, change
from harness.report import case

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "ssh", "rsync")]


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
