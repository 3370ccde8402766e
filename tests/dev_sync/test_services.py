"""Units of changed layers are started, stopped, masked and linked by `vmbake dev sync`."""


import pytest

from harness.dev_sync import actions
from harness.report import case

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "ssh", "rsync")]


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
