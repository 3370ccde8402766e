#!/usr/bin/env python3
"""life.py [--only LIFE]… IMAGE.raw…: boots baked images of knc and knd with their own systemd below systemd-nspawn, through all phases of their lives.

First boot with and without data, live updates, failures, second boot: the states are asserted with the systemctl of the
machine. The images are not written to. Prints `ok: NAME` or `FAIL: NAME` for each case. Needs root.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile
import time

from harness import cluster, cluster_node, scenarios
from harness.cluster import ADMIN, MOVED, PORTS, Authority, environment
from harness.cluster_node import FIRST
from harness.machine import ADDRESS, ADDRESS6, Machine
from harness.report import case, failures, skip
from harness.scenarios import LATE, MARKER

# Values that a shell, systemd or the program loader could misinterpret.
SECRET = "it's \"4\" \\ $HOME `id` # ;'\nLD_PRELOAD=/tmp/x\n'"
# The authorized key.
KEYS = "/home/admin/.ssh/authorized_keys"
USER_DATA = scenarios.USER_DATA.lstrip("/")
# Three attempts at once instead of fifteen in minutes.
FAST = "[Unit]\nStartLimitIntervalSec=6s\nStartLimitBurst=3\n[Service]\nRestartSec=100ms\n"
# Seconds instead of a quarter of an hour, but more than that interval.
SOON = "[Timer]\nOnUnitInactiveSec=\nOnUnitInactiveSec=8s\nAccuracySec=100ms\n"


# User data of each provider, in addition to those of all providers.
PROVIDERS = {
    "local": {},
    "aws": {"PROVIDER_KIND": "aws", "AWS_ACCOUNT_ID": "123456789012", "PROVIDER_REGION": "eu-west-1", "PROVIDER_ZONE": "eu-west-1a"},
    "google": {"PROVIDER_KIND": "google", "GOOGLE_PROJECT_ID": "blue-project", "PROVIDER_REGION": "europe-west1", "PROVIDER_ZONE": "europe-west1-b"},
    "proxmox": {"PROVIDER_KIND": "proxmox"},
}


class Node(cluster_node.Node, Machine):
    """A machine of a cluster of one. Its files are prepared before the boot, where the root file system is at hand."""

    addresses, host, sysctl = (ADDRESS, ADDRESS6), "10.9.8.20", ("/proc/sys/net/ipv4/ip_default_ttl", "77\n")

    def prepare(self):
        self.kind = re.search(r"^IMAGE_ID=\"?(\w+)", (self.root / "etc/os-release").read_text(), re.MULTILINE).group(1)
        self.authority = Authority()
        (self.root / "etc/cloud/cloud-init.disabled").touch()
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n10.9.8.20 lb.blue.example\n")
        (self.root / "var/lib/cloud/data").mkdir(parents=True, exist_ok=True)
        (self.root / "var/lib/cloud/data/instance-id").write_text("iid-one\n")
        # Of the real sysctl.d most is not the machine's to change here; that which is proves that sysctl was run.
        for path in (self.root / "usr/lib/sysctl.d").iterdir():
            (self.root / "etc/sysctl.d" / path.name).write_text("")
        (self.root / "etc/sysctl.d/99-life.conf").write_text("net.ipv4.ip_default_ttl = 77\n")

    def case(self, name, ok, said=""):
        case(name, ok, said)

    def asked(self):
        return self.network.connected

    servers = (f"{ADDRESS}:{PORTS[0]}", f"[{ADDRESS6}]:{PORTS[1]}")
    moved = (f"{ADDRESS}:{MOVED[0]}", f"[{ADDRESS6}]:{MOVED[1]}")

    def move(self, back=False):
        self.network.deaf()
        self.network.listen(*(PORTS if back else MOVED))

    @property
    def settings(self):
        """All that is delivered to a machine with bare user data."""
        return cluster.delivery(KUBE_API_INTERNAL_LB_HOSTNAME=self.host)

    def data(self, **more):
        return environment(cluster.user_data(self.authority, **more))

    def nonce(self):
        (self.root / "opt/nstance-agent/identity/nonce.jwt").write_text("nonce")


def begin(node, data=None):
    """Boots with user data, which leave nothing to be delivered unless others are given."""
    (node.root / USER_DATA).write_text(data or node.data())
    node.nonce()
    node.network.listen(*PORTS)
    node.boot()


def bare(node):
    """Boots with the data that the command line of a cluster writes. The load balancer has an address and no name."""
    node.host = "fd00:9::20"
    begin(node, environment(cluster.bare(node.authority, **PROVIDERS[node.provider])))
    scenarios.bare(node)


def attempts(node):
    return node.journal("-u", FIRST).count(f"Starting {FIRST}")


def late(node):
    """Data that are copied to the machine, first wrong ones."""
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
    case(f"{name}: nothing was written", not node.get(MARKER) and node.failed() == {FIRST}, node.failed())

    recovers(node, name)
    hosts_refreshed(node, name)
    deaf(node)


def recovers(node, name):
    """The right data follow, slowly, and once more."""
    text = node.data(REGISTRY_SECRET_ACCESS_KEY=SECRET)
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

    file, variable = "/opt/env/zot.env", "REGISTRY_SECRET_ACCESS_KEY"
    code, said = node.run("systemd-run", "--quiet", "--wait", "--pipe", f"--property=EnvironmentFile={file}", "/usr/bin/env", "-0")
    found = dict(entry.split("=", 1) for entry in said.split("\0") if entry)
    case(f"{name}: systemd reads a secret as it is", code == 0 and found.get(variable) == SECRET and "LD_PRELOAD" not in found, said)
    code, said = node.run("sh", "-c", f'. {file} && printf %s "${variable}"')
    case(f"{name}: so does a shell", code == 0 and said == SECRET, said)

    before, runs = node.invocations(), node.journal("-u", LATE).count("Finished")
    (node.root / USER_DATA).write_text(text)
    seen = node.until(lambda: node.journal("-u", LATE).count("Finished") == runs + 1)
    case(f"{name}: the same again starts nothing anew", seen and node.settled() and not node.changed(before), node.changed(before))


def hosts_refreshed(node, name):
    hosts = node.root / "etc/hosts"
    hosts.write_text(hosts.read_text().replace("10.9.8.20 lb", "10.9.8.21 lb"))
    code, said = node.run("systemctl", "start", "hosts-refresh.service")
    address = "127.0.0.1" if node.kind == "knc" else "10.9.8.21"
    found = node.run("getent", "hosts", "kube-apiserver.podplane.internal")[1].split()[:1]
    case(f"{name}: /etc/hosts follows the name of the cluster", code == 0 and found == [address], (said, found))
    timer = node.systemctl("show", "-p", "TimersMonotonic,RandomizedDelayUSec,ActiveState", "hosts-refresh.timer")
    parts = ("OnBootUSec=1min ;", "OnUnitActiveUSec=5min ;", "RandomizedDelayUSec=30s\n", "ActiveState=active\n")
    case(f"{name}: and will again", all(part in timer for part in parts), timer)


def deaf(node):
    """Boots while the servers do not answer."""
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


# The command line's script if everything is installed: the settings come before the nonce, and nothing is called.
HANDED = """#!/bin/sh -eu
mkdir -p /opt/podplane/artifacts
echo downloaded >/opt/podplane/artifacts/runc
cat /root/user-data.env >/opt/podplane/etc/user-data.env
chmod 0600 /opt/podplane/etc/user-data.env
sleep 0.5
mv /root/nonce.jwt /opt/nstance-agent/identity/nonce.jwt
systemctl restart nstance-agent || true
"""

# The script has to wait until its data were noticed: only then it can be overtaken.
SCRIPT = """#!/bin/sh -eu
mkdir -p /opt/podplane/artifacts/folder
echo downloaded >/opt/podplane/artifacts/runc
/opt/podplane/bin/install.sh
cp /root/user-data.env /opt/podplane/etc/user-data.env
until systemctl list-jobs | grep -q first-boot-user-data.service; do sleep 0.05; done
/opt/podplane/bin/configure.sh
/opt/podplane/bin/restart.sh
"""


def scripted(node, text=SCRIPT, nonce="opt/nstance-agent/identity/nonce.jwt"):
    """Boots with a script of cloud-init, by default one that configures the machine itself."""
    (node.root / "etc/cloud/cloud-init.disabled").unlink()
    (node.root / "etc/cloud/cloud.cfg.d/99_life.cfg").write_text(
        "datasource_list: [NoCloud]\nnetwork: {config: disabled}\ncloud_init_modules: []\ncloud_config_modules: []\n"
        "cloud_final_modules: [scripts_user]\n")
    seed = node.root / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    (seed / "meta-data").write_text("instance-id: iid-one\n")
    (seed / "user-data").write_text(text)
    (node.root / "root/user-data.env").write_text(node.data(IMMUTABLE_SSH_AUTHORIZED_KEYS=ADMIN))
    (node.root / nonce).write_text("nonce")
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
    case(f"{name}: admin may log in", node.owned(KEYS) == {KEYS: "600 admin:admin"})
    downloads = "/opt/podplane/artifacts"
    case(f"{name}: what was downloaded is gone", node.owned(downloads) == {downloads: None})


def handed(node):
    """The script hands over settings and nonce, one after the other, and leaves the rest to the machine."""
    node.network.listen(*PORTS)
    scripted(node, HANDED, "root/nonce.jwt")
    name = f"{node.kind}, settings before the nonce"
    done = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active") and node.settled()
    case(f"{name}: configured, at the first attempt", done and attempts(node) == 1, node.journal("-u", FIRST, "-u", LATE, "-u", "cloud-final.service"))
    found = node.states("cloud-final.service", "nstance-agent.service", "containerd.service", "fluent-bit.service", "nstance-recv-watch.path")
    case(f"{name}: services run", {state[0] for state in found.values()} == {"active"} and not node.failed(), (found, node.failed()))
    nonce = "/opt/nstance-agent/identity/nonce.jwt"
    case(f"{name}: the agent's user has the nonce", node.owned(nonce) == {nonce: "600 nstance-agent:nstance-agent"})


def alone(node):
    """The script fails, since nothing listens: the machine continues by itself."""
    scripted(node)
    name = f"{node.kind}, failed script of cloud-init"
    tried = node.until(lambda: attempts(node) > 0)
    case(f"{name}: is tried again", tried, node.journal("-u", FIRST, "-u", LATE, "-u", "cloud-final.service"))
    node.network.listen(*PORTS)
    recovered = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active") and node.settled()
    case(f"{name}: recovers on its own", recovered and node.states("nstance-agent.service")["nstance-agent.service"] == ("active", "enabled"),
         node.journal("-u", FIRST, "-u", LATE))


BEGIN = (bare, scenarios.forwarded, scenarios.delivered, scenarios.certificates)
END = (scenarios.emptied, scenarios.restored, scenarios.second_boot)
LIFE = (*BEGIN, scenarios.switched, scenarios.third_boot, scenarios.resumed, *END)
# On each provider: bare, full, emptied, full again, and started again while the servers are at other ports.
CYCLE = (bare, scenarios.delivered, scenarios.emptied, scenarios.again, scenarios.moved)


def judge(images, only=()):
    """Lives the lives of the images, or only those of these names; returns how many cases failed."""
    kinds = {path: pathlib.Path(path).name.split(".")[0] for path in images}
    plane = next((path for path, kind in kinds.items() if kind == "knc"), images[0])
    data = next((path for path, kind in kinds.items() if kind == "knd"), images[0])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        lives = [("life", plane, "local", LIFE), ("worker", data, "local", (*BEGIN, *END)), ("late", data, "local", (late,)),
                 ("script", data, "local", (script,)), ("handed", data, "local", (handed,)), ("alone", data, "local", (alone,))]
        for kind, image in (("knc", plane), ("knd", data)):
            # Once, the machine learns of the ports when it has booted.
            lives += [(f"{kind}-{provider}", image, provider, (*CYCLE, *([scenarios.moved_back] if provider == "local" else []))) for provider in PROVIDERS]
        for name, image, provider, steps in lives:
            if only and name not in only:
                continue
            start = time.monotonic()
            with Node(image, folder, name) as node:
                node.prepare()
                node.provider = provider
                for step in steps:
                    step(node)
            print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    return len(failures)


def main(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("images", nargs="+")
    arguments = parser.parse_args(words)
    if os.getuid() != 0:
        return skip("needs root")
    print(f"{judge(arguments.images, arguments.only)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
