"""`vmbake dev sync` that is interrupted, fails, watches or refuses; and a machine of `vmbake boot`."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

from harness.dev_sync import STATE, TEMPLATE, Developer, Layers, actions, change, only
from harness.machine import ADDRESS
from harness.report import case

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "ssh", "rsync")]


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
