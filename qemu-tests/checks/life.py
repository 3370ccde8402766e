#!/usr/bin/python3
"""life.py IMAGE.raw…: boots baked images of knc and knd with their own systemd below systemd-nspawn, and lives their lives.

First boot with and without data, live updates, failures, second boot: the states are asserted with the systemctl of the
machine. The images are not written to. Prints `ok: NAME` or `FAIL: NAME` for each case. Needs root.
"""

import os
import pathlib
import re
import sys
import tempfile
import time

import cluster
from cluster import ADMIN, ARGUMENTS, CRT, KEY, PLANE, PORTS, PUB, RECEIVERS, UNTOUCHED, Authority, environment
from machine import Machine

FIRST = "first-boot-env.service"
LATE = "first-boot-user-data.service"
WATCH = "nstance-recv-watch.service"
USER_DATA = "opt/podplane/etc/user-data.env"
AGENT = "opt/nstance-agent"
# Three attempts at once instead of fifteen in minutes.
FAST = "[Unit]\nStartLimitIntervalSec=6s\nStartLimitBurst=3\n[Service]\nRestartSec=100ms\n"
# Seconds instead of a quarter of an hour, but more than that interval.
SOON = "[Timer]\nOnUnitInactiveSec=\nOnUnitInactiveSec=8s\nAccuracySec=100ms\n"
# The private key of each service, by the name of its certificate, where that is not the first word of it.
SERVICES = {"front-proxy.client": ("kube-apiserver", "kube-apiserver"), "registry.server": ("registry", "zot")}
failures = []


def case(name, ok, said=""):
    print(f"{'ok' if ok else 'FAIL'}: {name}", flush=True)
    if not ok:
        failures.append(name)
        print(str(said)[-4000:], flush=True)


class Node(Machine):
    """A machine of a cluster of one."""

    def prepare(self):
        self.kind = re.search(r"^IMAGE_ID=\"?(\w+)", (self.root / "etc/os-release").read_text(), re.MULTILINE).group(1)
        self.services = RECEIVERS + (PLANE if self.kind == "knc" else [])
        self.authority = Authority()
        (self.root / "etc/cloud/cloud-init.disabled").touch()
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n10.9.8.20 lb.blue.example\n")
        (self.root / "var/lib/cloud/data").mkdir(parents=True, exist_ok=True)
        (self.root / "var/lib/cloud/data/instance-id").write_text("iid-one\n")
        # Of the real sysctl.d most is not the machine's to change here; that which is proves that sysctl was run.
        for path in (self.root / "usr/lib/sysctl.d").iterdir():
            (self.root / "etc/sysctl.d" / path.name).write_text("")
        (self.root / "etc/sysctl.d/99-life.conf").write_text("net.ipv4.ip_default_ttl = 77\n")

    def data(self, **more):
        return environment(cluster.user_data(self.authority, **more))

    def nonce(self):
        (self.root / AGENT / "identity/nonce.jwt").write_text("nonce")

    def read(self, path):
        """The content of a file, or None."""
        path = self.root / path.removeprefix("/")
        return path.read_bytes() if path.is_file() else None

    def owners(self, name, expected):
        found = self.owned(*expected)
        case(name, found == expected, {path: owner for path, owner in found.items() if owner != expected[path]})

    def invocations(self):
        return {unit: found["InvocationID"] for unit, found in self.show(*self.services, *UNTOUCHED).items()}

    def deliver(self, files, keys=None):
        """Does what the agent does, and waits for what comes of it."""
        agent = next(line.split(":") for line in (self.root / "etc/passwd").read_text().splitlines() if line.startswith("nstance-agent:"))
        before = self.show(WATCH)[WATCH]["InvocationID"]
        for folder, mode, content in (("keys", 0o640, keys or {}), ("recv", 0o600, files), ("recv", 0o600, {"write-files.last": b""})):
            for name, text in content.items():
                path = self.root / AGENT / folder / name
                path.write_bytes(text)
                path.chmod(mode)
                os.chown(path, int(agent[2]), int(agent[3]))

        def done():
            found = self.show(WATCH)[WATCH]
            return found["InvocationID"] != before and found["ActiveState"] in ("inactive", "failed")
        return self.until(done) and self.settled()

    def changed(self, before):
        return {unit for unit, invocation in self.invocations().items() if invocation != before[unit]}


def snapshot(root):
    """What may not change when there is nothing new; the last time changes with modes and owners as well."""
    found = {}
    for top in ("opt", "etc", "home", "var/lib/vmbake"):
        for folder, _, names in os.walk(root / top):
            for name in names:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                found[path.removeprefix(f"{root}/")] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return found


def first_boot(node):
    (node.root / USER_DATA).write_text(node.data())
    node.nonce()
    node.network.listen(*PORTS)
    node.boot()
    name = f"{node.kind}, first boot"
    case(f"{name}: no unit has failed, no job hangs", not node.failed() and node.systemctl("is-system-running").strip() == "running",
         node.systemctl("--failed") + node.systemctl("list-jobs") + node.journal("-u", FIRST))
    case(f"{name}: the console says so", re.search(rf"vmbake-firstboot: configured {node.kind}\b", node.console()), node.console()[-2000:])
    case(f"{name}: the servers were asked", sorted(set(node.network.connected)) == list(PORTS), node.network.connected)
    expected = {FIRST: ("active", "enabled"), "nstance-agent.service": ("active", "enabled"), "containerd.service": ("active", "enabled"),
                "fluent-bit.service": ("active", "enabled"), "kube2iam.service": ("inactive", "disabled"),
                "nstance-recv-watch.path": ("active", "enabled"), WATCH: ("inactive", "enabled"),
                "hosts-refresh.timer": ("active", "enabled"), "first-boot-user-data.path": ("active", "enabled")}
    # Enabled, but without certificates.
    expected |= {unit: ("inactive", "enabled") for unit in node.services if unit != "fluent-bit.service"}
    found = node.states(*expected)
    case(f"{name}: states", found == expected, {unit: state for unit, state in found.items() if state != expected[unit]})
    node.owners(f"{name}: owners", {
        "/opt/env/nstance-agent.env": "640 root:nstance-agent", "/opt/env/kubelet.env": "600 root:root",
        "/opt/env/zot.env": "640 root:zot", "/opt/zot/etc/zot.yml": "640 root:zot", "/opt/env/fluent-bit.env": "640 root:fluent-bit",
        f"/{AGENT}/identity/ca.crt": "600 nstance-agent:nstance-agent", f"/{AGENT}/identity/nonce.jwt": "600 nstance-agent:nstance-agent",
        "/opt/podplane/etc/mutable.env": "600 root:root", "/opt/podplane/etc/detected.env": "600 root:root",
        "/run/containerd/containerd.sock": "660 root:containerd", "/home/admin/.ssh/authorized_keys": None, "/etc/sudoers.d/admin": None})
    _, variables = node.started("nstance-agent.service")
    expected = {"NSTANCE_INSTANCE_ID": "one", "NSTANCE_INSTANCE_KIND": node.kind, "NSTANCE_INSTANCE_IPV4": cluster.ADDRESS,
                "NSTANCE_INSTANCE_IPV6": cluster.ADDRESS6, "NSTANCE_RECV_DIR": f"/{AGENT}/recv", "USER": "nstance-agent"}
    case(f"{name}: the agent's environment", expected.items() <= variables.items(), variables)
    arguments, variables = node.started("fluent-bit.service")
    case(f"{name}: fluent-bit", arguments[1:] == ["-c", "/opt/fluent-bit/etc/fluent-bit.yml"] and variables.get("AWS_ACCESS_KEY_ID") == "writer",
         (arguments, variables))
    pid = node.systemctl("show", "-P", "MainPID", "fluent-bit.service").strip()
    groups = re.search(r"^Groups:(.*)$", node.run("cat", f"/proc/{pid}/status")[1], re.MULTILINE)
    adm = node.run("getent", "group", "adm")[1].split(":")[2]
    case(f"{name}: fluent-bit may read the log of cloud-init", groups and adm in groups.group(1).split(), groups)
    host = "127.0.0.1" if node.kind == "knc" else "10.9.8.20"
    code, said = node.run("getent", "hosts", "kube-apiserver.podplane.internal")
    case(f"{name}: /etc/hosts", code == 0 and said.split()[0] == host and "lb.blue.example" in (node.root / "etc/hosts").read_text(), said)
    case(f"{name}: sysctl", node.run("cat", "/proc/sys/net/ipv4/ip_default_ttl")[1] == "77\n")


def certificates(node):
    """The agent brings certificates and keys for all services."""
    names = ["kubelet.client", "kubelet.server", "registry.server", "containerd.client", "kube2iam.client"]
    received = ["ca.crt", "ca.pub", "service-accounts.pub", "service-accounts.key"]
    if node.kind == "knc":
        names += ["netsy.client", "netsy.server", "kube-apiserver.client", "kube-apiserver.server", "front-proxy.client",
                  "kube-controller-manager.client", "kube-scheduler.client"]
    else:
        received.remove("service-accounts.key")
    node.authority.issue(*names)
    files = {name: node.authority.files[name] for name in [*received, *(f"{name}.crt" for name in names)]}
    before = node.invocations()
    done = node.deliver({**files, "stranger.crt": b"-"}, {f"{name}.key": node.authority.files[f"{name}.key"] for name in names})
    name = f"{node.kind}, certificates"
    case(f"{name}: done", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", WATCH))
    placed = {f"{PUB if file.endswith('.pub') else CRT}/{file}": "640 root:podplane" for file in files if not file.endswith(".key")}
    placed |= {f"{KEY}/kube-apiserver/{file}": "640 root:kube-apiserver" for file in files if file.endswith(".key")}
    contents = {path: files[pathlib.Path(path).name] for path in placed}
    for service in names:
        folder, group = SERVICES.get(service, (service.split(".")[0],) * 2)
        placed[f"{KEY}/{folder}/{service}.key"] = f"640 root:{group}"
        contents[f"{KEY}/{folder}/{service}.key"] = node.authority.files[f"{service}.key"]
    placed |= {f"{CRT}/stranger.crt": None}
    node.owners(f"{name}: in their places", placed)
    wrong = [path for path, content in contents.items() if node.read(path) != content]
    case(f"{name}: as they were sent", not wrong, wrong)
    case(f"{name}: exactly the receivers started anew", node.changed(before) == set(node.services), node.changed(before) ^ set(node.services))
    found = {unit: state[0] for unit, state in node.states(*node.services).items()}
    case(f"{name}: all run", set(found.values()) == {"active"}, found)
    for service, expected in ARGUMENTS.items():
        if f"{service}.service" in node.services:
            arguments, _ = node.started(f"{service}.service")
            flags = dict((argument.removeprefix("--") + "=").split("=", 1) for argument in arguments[1:])
            flags = {flag: value.removesuffix("=") for flag, value in flags.items()}
            case(f"{name}: flags of {service}", flags == expected and len(arguments) == len(expected) + 1, flags.items() ^ expected.items())
    arguments, variables = node.started("zot.service")
    case(f"{name}: zot", arguments[1:] == ["serve", "/opt/zot/etc/zot.yml"] and variables.get("AWS_ACCESS_KEY_ID") == "reader",
         (arguments, variables))


def switched(node):
    """Telemetry and registry off, a key for admin; and one service that does not start."""
    broken = (node.services + ["kubelet.service"])[3]
    drop = node.root / f"etc/systemd/system/{broken}.d"
    drop.mkdir()
    (drop / "broken.conf").write_text("[Service]\nRestart=no\nExecStartPre=/bin/false\n")
    before = node.invocations()
    done = node.deliver({"mutable.env": environment({"TELEMETRY_ENABLED": "false", "REGISTRY_ENABLED": "false", "SSH_AUTHORIZED_KEYS": ADMIN}).encode()})
    name = f"{node.kind}, switched off"
    expected = {unit: ("active", "enabled") for unit in [*node.services, *UNTOUCHED]} | {
        "fluent-bit.service": ("inactive", "disabled"), "zot.service": ("inactive", "disabled"), broken: ("failed", "enabled")}
    found = node.states(*expected)
    case(f"{name}: states", done and found == expected, {unit: state for unit, state in found.items() if state != expected[unit]})
    case(f"{name}: the service that fails is shown", {broken} <= node.failed() <= {broken, WATCH}, node.failed())
    others = {unit for unit in node.services if expected[unit][0] == "active"}
    case(f"{name}: the others started anew", node.changed(before) & {*others, *UNTOUCHED} == others, node.changed(before))
    hosts = "/etc/containerd/certs.d/registry.blue.example/hosts.toml"
    node.owners(f"{name}: owners", {"/home/admin/.ssh": "700 admin:admin", "/home/admin/.ssh/authorized_keys": "600 admin:admin",
                                    "/etc/sudoers.d/admin": "440 root:root", hosts: None, "/opt/podplane/etc/mutable.env": "600 root:root"})
    case(f"{name}: admin may log in", node.read("/home/admin/.ssh/authorized_keys") == f"{ADMIN}\n".encode())
    code, said = node.run("runuser", "-u", "admin", "--", "sudo", "-n", "id", "-u")
    case(f"{name}: admin may do all", code == 0 and said.strip() == "0", said)
    case(f"{name}: admin has a shell", node.run("getent", "passwd", "admin")[1].strip().endswith(":/home/admin:/bin/bash"))

    (drop / "broken.conf").unlink()
    done = node.deliver({"mutable.env": environment({"TELEMETRY_ENABLED": "true", "REGISTRY_ENABLED": "true", "SSH_AUTHORIZED_KEYS": ""}).encode()})
    name = f"{node.kind}, switched on"
    found = node.states(*node.services)
    case(f"{name}: all run again", done and set(found.values()) == {("active", "enabled")} and not node.failed(), (found, node.failed()))
    node.owners(f"{name}: owners", {"/home/admin/.ssh/authorized_keys": None, "/etc/sudoers.d/admin": None, hosts: "644 root:root"})
    case(f"{name}: containerd was left alone", not node.changed(before) & set(UNTOUCHED))


def second_boot(node):
    before = snapshot(node.root)
    asked = len(node.network.connected)
    node.stop()
    node.boot()
    after = snapshot(node.root)
    name = f"{node.kind}, second boot"
    case(f"{name}: no file was written", before == after, sorted(dict(before.items() ^ after.items())))
    found = {unit: state[0] for unit, state in node.states(*node.services, *UNTOUCHED).items()}
    case(f"{name}: all run", set(found.values()) == {"active"} and not node.failed(), found)
    case(f"{name}: the servers were asked", sorted(set(node.network.connected[asked:])) == list(PORTS))
    case(f"{name}: the console says so", node.console().count("vmbake-firstboot: configured") == 2, node.console()[-2000:])


def resumed(node):
    """A power cut ended recv-watch when it had just removed the trigger."""
    node.stop()
    (node.root / AGENT / "recv/mutable.env").write_text(environment({"SSH_AUTHORIZED_KEYS": ADMIN}))
    mark = node.root / "var/lib/vmbake/receiving"
    mark.touch()
    node.boot()
    name = f"{node.kind}, boot after a run that was killed"
    [owner] = node.owned("/home/admin/.ssh/authorized_keys").values()
    case(f"{name}: takes what it left", owner == "600 admin:admin" and not mark.exists() and not node.failed(), node.journal("-u", WATCH))


def attempts(node):
    return node.journal("-u", FIRST).count(f"Starting {FIRST}")


def late(node):
    """Data that somebody copies to the machine, first wrong ones."""
    drop = node.root / f"etc/systemd/system/{FIRST}.d"
    drop.mkdir()
    (drop / "fast.conf").write_text(FAST)
    node.nonce()
    node.network.listen(*PORTS)
    node.boot()
    name = f"{node.kind}, late data"
    found = node.show(FIRST, "nstance-agent.service")
    case(f"{name}: waits", found[FIRST]["ActiveState"] == "inactive" and not node.failed() and not node.network.connected,
         node.systemctl("--failed") + str(found))

    (node.root / USER_DATA).write_text(node.data(PROVIDER_KIND="moon"))
    shown = node.until(lambda: FIRST in node.failed() and attempts(node) == 3)
    case(f"{name}: an unknown PROVIDER_KIND fails, three times", shown, node.journal("-u", FIRST, "-u", LATE))
    lines = [line for line in node.console().splitlines() if "PROVIDER_KIND" in line and "moon" in line]
    case(f"{name}: the console says why, once for each attempt", len(lines) == 3, node.console()[-2000:])
    case(f"{name}: nothing was written", not (node.root / "opt/podplane/bootstrap.done").exists() and node.failed() == {FIRST}, node.failed())

    text = node.data()
    (node.root / USER_DATA).unlink()
    with open(node.root / USER_DATA, "w") as file:
        file.write(text[:100])
        file.flush()
        time.sleep(1)  # the subject: a writer that takes its time
        file.write(text[100:])
    recovered = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active") and node.settled()
    # Two attempts would mean that the half was read.
    case(f"{name}: recovers with the whole of the right data", recovered and attempts(node) == 4 and not node.failed(), node.journal("-u", FIRST))
    case(f"{name}: the agent runs", node.states("nstance-agent.service")["nstance-agent.service"] == ("active", "enabled"))

    before, runs = node.invocations(), node.journal("-u", LATE).count("Finished")
    (node.root / USER_DATA).write_text(text)
    seen = node.until(lambda: node.journal("-u", LATE).count("Finished") == runs + 1)
    case(f"{name}: the same again starts nothing anew", seen and node.settled() and not node.changed(before), node.changed(before))

    hosts = node.root / "etc/hosts"
    hosts.write_text(hosts.read_text().replace("10.9.8.20 lb", "10.9.8.21 lb"))
    code, said = node.run("systemctl", "start", "hosts-refresh.service")
    address = "127.0.0.1" if node.kind == "knc" else "10.9.8.21"
    found = node.run("getent", "hosts", "kube-apiserver.podplane.internal")[1].split()[:1]
    case(f"{name}: /etc/hosts follows the name of the cluster", code == 0 and found == [address], (said, found))
    timer = node.systemctl("show", "-p", "TimersMonotonic,RandomizedDelayUSec,ActiveState", "hosts-refresh.timer")
    parts = ("OnBootUSec=1min ;", "OnUnitActiveUSec=5min ;", "RandomizedDelayUSec=30s\n", "ActiveState=active\n")
    case(f"{name}: and will again", all(part in timer for part in parts), timer)

    node.network.deaf()
    node.stop()
    drop = node.root / "etc/systemd/system/first-boot-retry.timer.d"
    drop.mkdir()
    (drop / "soon.conf").write_text(SOON)
    node.boot()
    name = f"{node.kind}, deaf servers"
    case(f"{name}: fails, three times", node.until(lambda: FIRST in node.failed() and attempts(node) == 3), node.journal("-u", FIRST))
    case(f"{name}: services run as they were configured", node.states("nstance-agent.service")["nstance-agent.service"][0] == "active")
    node.network.listen(*PORTS)
    recovered = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active")
    case(f"{name}: recovers on its own", recovered and not node.failed(), node.journal("-u", FIRST))


# The script has to wait until its data were noticed: only then it can be overtaken.
SCRIPT = """#!/bin/sh -eu
/opt/podplane/bin/install.sh
cp /root/user-data.env /opt/podplane/etc/user-data.env
until systemctl list-jobs | grep -q first-boot-user-data.service; do sleep 0.05; done
/opt/podplane/bin/configure.sh
/opt/podplane/bin/restart.sh
"""


def scripted(node):
    """Boots with a script of cloud-init that configures the machine itself."""
    (node.root / "etc/cloud/cloud-init.disabled").unlink()
    (node.root / "etc/cloud/cloud.cfg.d/99_life.cfg").write_text(
        "datasource_list: [NoCloud]\nnetwork: {config: disabled}\ncloud_init_modules: []\ncloud_config_modules: []\n"
        "cloud_final_modules: [scripts_user]\n")
    seed = node.root / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    (seed / "meta-data").write_text("instance-id: iid-one\n")
    (seed / "user-data").write_text(SCRIPT)
    (node.root / "root/user-data.env").write_text(node.data(IMMUTABLE_SSH_AUTHORIZED_KEYS=ADMIN))
    node.nonce()
    node.boot()


def script(node):
    """The script does all."""
    node.network.listen(*PORTS)
    scripted(node)
    name = f"{node.kind}, script of cloud-init"
    done = node.until(lambda: node.show(LATE)[LATE]["Result"] == "exec-condition")
    case(f"{name}: was not overtaken", done and attempts(node) == 0 and len(node.network.connected) == 2,
         node.journal("-u", FIRST, "-u", LATE, "-u", "cloud-final.service"))
    node.settled()
    found = node.states("cloud-final.service", "nstance-agent.service", "containerd.service", "fluent-bit.service", "nstance-recv-watch.path")
    case(f"{name}: services run", {state[0] for state in found.values()} == {"active"} and not node.failed(), (found, node.failed()))
    case(f"{name}: admin may log in", node.owned("/home/admin/.ssh/authorized_keys") == {"/home/admin/.ssh/authorized_keys": "600 admin:admin"})


def alone(node):
    """The script fails, as nobody listens: the machine goes on by itself."""
    scripted(node)
    name = f"{node.kind}, failed script of cloud-init"
    tried = node.until(lambda: attempts(node) > 0)
    case(f"{name}: is tried again", tried, node.journal("-u", FIRST, "-u", LATE, "-u", "cloud-final.service"))
    node.network.listen(*PORTS)
    recovered = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active") and node.settled()
    case(f"{name}: recovers on its own", recovered and node.states("nstance-agent.service")["nstance-agent.service"] == ("active", "enabled"),
         node.journal("-u", FIRST, "-u", LATE))


def judge(images):
    """Lives the lives of the images; returns how many cases failed."""
    kinds = {path: pathlib.Path(path).name.split(".")[0] for path in images}
    plane = next((path for path, kind in kinds.items() if kind == "knc"), images[0])
    data = next((path for path, kind in kinds.items() if kind == "knd"), images[0])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for name, image, scenarios in (("life", plane, (first_boot, certificates, switched, second_boot, resumed)), ("late", data, (late,)),
                                       ("script", data, (script,)), ("alone", data, (alone,))):
            start = time.monotonic()
            with Node(image, folder, name) as node:
                node.prepare()
                for scenario in scenarios:
                    scenario(node)
            print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    return len(failures)


def main(images):
    if os.getuid() != 0:
        print("skipped: needs root")
        return 1 if os.environ.get("CI") else 0
    print(f"{judge(images)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
