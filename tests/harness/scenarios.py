"""The life of a node of a cluster, as checks of a running machine: below systemd-nspawn (life.py) and in qemu alike.

The machine must be able to `run` a program, `put` and `get` files, return its `console`, wait `until` a condition holds, and `reboot`.
Each scenario is a function that takes a node and reports its cases to it; those that change the machine say so.
"""

import hashlib
import pathlib
import re

from harness import cluster
from harness.cluster import ADMIN, CRT, KEY, MOVED, PORTS, PUB, UNTOUCHED, environment
from harness.cluster_node import AGENT, FIRST, WATCH

LATE = "first-boot-user-data.service"
USER_DATA = "/opt/podplane/etc/user-data.env"
MARKER = "/opt/podplane/bootstrap.done"
# The private key of each service, by the name of its certificate, where that is not the first word of it.
SERVICES = {"front-proxy.client": ("kube-apiserver", "kube-apiserver"), "registry.server": ("registry", "zot")}
# Settings without which a service has nothing to do: what is emptied is off again.
COMPLETE = ("NETSY_BUCKET", "REGISTRY_BUCKET", "REGISTRY_HOSTNAME", "TELEMETRY_S3_BUCKET")
HOSTS = "/etc/containerd/certs.d/registry.blue.example/hosts.toml"


def ended(node, name):
    """How the first boot ended, whatever the user data have."""
    node.case(f"{name}: no unit has failed, no job hangs", not node.failed() and node.systemctl("is-system-running").strip() == "running",
              node.systemctl("--failed") + node.systemctl("list-jobs") + node.journal("-u", FIRST))
    node.case(f"{name}: the console says so", re.search(rf"vmbake-firstboot: configured {node.kind}\b", node.console()), node.console()[-2000:])
    node.case(f"{name}: the servers were asked", sorted(set(node.asked())) == list(PORTS), node.asked())


def states(node, name, off=()):
    """The units that run, wait for certificates, or are off."""
    expected = {FIRST: ("active", "enabled"), "nstance-agent.service": ("active", "enabled"), "containerd.service": ("active", "enabled"),
                "fluent-bit.service": ("active", "enabled"), "kube2iam.service": ("inactive", "enabled" if node.provider == "aws" else "disabled"),
                "nstance-recv-watch.path": ("active", "enabled"), WATCH: ("inactive", "enabled"),
                "hosts-refresh.timer": ("active", "enabled"), "first-boot-user-data.path": ("active", "enabled")}
    # Enabled, but without certificates.
    expected |= {unit: ("inactive", "disabled" if unit in off else "enabled") for unit in node.services if unit != "fluent-bit.service"}
    found = node.states(*expected)
    node.case(f"{name}: states", found == expected, {unit: state for unit, state in found.items() if state != expected[unit]})


def first_boot(node):
    """After the first boot with user data that leave nothing to be delivered."""
    name = f"{node.kind}, first boot"
    ended(node, name)
    states(node, name)
    configured(node, name)


def bare(node):
    """After the first boot with minimal user data: services without settings are off, and nothing has failed."""
    name = f"{node.kind}, bare first boot"
    ended(node, name)
    states(node, name, off=incomplete(node))
    files = {"/opt/zot/etc/zot.yml": None, HOSTS: None, "/opt/env/nstance-agent.env": "640 root:nstance-agent"}
    if node.kind == "knc":
        files |= {"/opt/env/netsy.env": None, "/opt/netsy/etc/cluster.jsonc": None, "/opt/env/kube-apiserver.env": "640 root:kube-apiserver"}
    node.owners(f"{name}: files", files)
    kept(node, name)
    node.case(f"{name}: no mirror of the registry", b"/mirror/" not in node.get("/etc/containerd/config.toml"))


def incomplete(node):
    return ["zot.service"] + (["netsy.service"] if node.kind == "knc" else [])


def kept(node, name):
    """Fluent Bit runs, and has nowhere to send records to."""
    said = node.get("/opt/fluent-bit/etc/fluent-bit.yml").decode()
    outputs = said.split("  outputs:")[1]
    node.case(f"{name}: records are kept", re.findall(r"- name: (\S+)", outputs) == ["http"] and "port: 1\n" in outputs, said)


def forwarded(node):
    """Additional process of user data for the provider local: a connection forwarder."""
    name, before = f"{node.kind}, forwarder", len(node.asked())
    server = node.servers[0]
    forwarder = ["/usr/bin/socat", "TCP-LISTEN:6000,bind=127.0.0.1,fork,reuseaddr", f"TCP:{server}"]
    # Its status when it is stopped.
    code, said = node.run("systemd-run", "--quiet", "--unit=forwarder", "--property=SuccessExitStatus=143", *forwarder)
    asked = node.until(lambda: node.run("/usr/bin/socat", "-u", "OPEN:/dev/null", "TCP:127.0.0.1:6000")[0] == 0)
    reached = node.until(lambda: len(node.asked()) > before)
    node.case(f"{name}: socat reaches the server", code == 0 and asked and reached, (said, node.journal("-u", "forwarder.service")))
    node.systemctl("stop", "forwarder.service")


def delivered(node):
    """The agent delivers all settings of the cluster: completed services are on, containerd has another configuration first."""
    before = node.invocations()
    # A local cluster has no public key yet.
    done = node.deliver({"mutable.env": cluster.delivered(node.settings).encode(), "ca.pub": b""})
    name = f"{node.kind}, settings"
    node.case(f"{name}: done", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", WATCH))
    states(node, name)
    configured(node, name)
    containerd(node, name, before)
    found = dict(line.split("=", 1) for line in node.get("/opt/podplane/etc/mutable.env").decode().splitlines())
    expected = {key: f"'{value}'" for key, value in node.settings.items()}
    node.case(f"{name}: all are kept, and no address of a server", found == expected and list(found) == sorted(found), found)
    node.owners(f"{name}: the empty key", {f"{PUB}/ca.pub": "640 root:podplane"})
    dns = re.findall(r'^  - "(.*)"$', node.get("/opt/kubelet/etc/kubelet.yaml").decode().split("clusterDNS:")[1], re.MULTILINE)
    node.case(f"{name}: the kubelet's DNS", dns == ["10.19.255.254", "fdc6::ffff"], dns)
    # zot joins address and port as they are.
    address = "[::1]" if node.addresses[1] else "127.0.0.1"
    node.case(f"{name}: address of zot", f'address: "{address}"\n'.encode() in node.get("/opt/zot/etc/zot.yml"), node.get("/opt/zot/etc/zot.yml"))


def containerd(node, name, before):
    """Its configuration has changed: it started anew, before the others."""
    changed = node.changed(before)
    node.case(f"{name}: containerd started anew", changed & set(UNTOUCHED) == {"containerd.service"}, changed)
    begun = {unit: int(found["ExecMainStartTimestampMonotonic"]) for unit, found in node.show(*changed).items()}
    first = begun.pop("containerd.service", 0)
    later = {unit: time for unit, time in begun.items() if time}
    node.case(f"{name}: before the others", first and later and all(first < time for time in later.values()), (first, later))


def emptied(node):
    """A delivery removes buckets, names and targets: incomplete services are off, and nothing has failed."""
    before, watched, were = node.invocations(), node.journal("-u", WATCH), node.states(*node.services, *UNTOUCHED)
    done = node.deliver({"mutable.env": environment(node.settings | dict.fromkeys(COMPLETE, "")).encode()})
    name = f"{node.kind}, settings taken away"
    node.case(f"{name}: done", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", WATCH)[len(watched):])
    off = incomplete(node)
    expected = {unit: ("inactive", "disabled") if unit in off else (state, "enabled") for unit, (state, _) in were.items()}
    found = node.states(*expected)
    node.case(f"{name}: states", found == expected, {unit: state for unit, state in found.items() if state != expected[unit]})
    files = {"/opt/zot/etc/zot.yml": None, HOSTS: None} | ({"/opt/env/netsy.env": None, "/opt/netsy/etc/cluster.jsonc": None} if node.kind == "knc" else {})
    node.owners(f"{name}: files", files)
    kept(node, name)
    containerd(node, name, before)


def again(node):
    """All settings once more: disabled services are on."""
    before = node.invocations()
    done = node.deliver({"mutable.env": cluster.delivered(node.settings).encode()})
    name = f"{node.kind}, settings once more"
    node.case(f"{name}: done", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", WATCH))
    found = node.states(*node.services)
    off = {unit: state for unit, state in found.items() if state[1] != "enabled"}
    node.case(f"{name}: all are on again", not off, off)
    containerd(node, name, before)


def moved(node):
    """The machine is off while the servers of its cluster are started at other ports, and the command line edits the files that name them."""
    _edit(node)
    node.move()
    asked = len(node.asked())
    node.reboot()
    _at_the_others(node, f"{node.kind}, other ports", asked)


def moved_back(node):
    """The servers are at the first ports again, which the machine learns after it has booted."""
    node.move(back=True)
    node.reboot()
    name = f"{node.kind}, ports of before"
    node.case(f"{name}: servers that are not there are asked again", node.until(lambda: "onfigure this machine" in node.journal("-u", FIRST)), node.journal("-u", FIRST))
    asked = len(node.asked())
    _edit(node, back=True)
    _at_the_others(node, name, asked, back=True)


def _edit(node, back=False):
    """In-place changes of a machine's files by the command line."""
    pairs = list(zip(node.servers, node.moved))
    for path, mode, owner in ((USER_DATA, 0o600, "root:root"), ("/opt/env/nstance-agent.env", 0o640, "root:nstance-agent")):
        text = node.get(path).decode()
        for old, new in ((new, old) for old, new in pairs) if back else pairs:
            assert old in text, (path, old)
            text = text.replace(old, new)
        node.put(path, text.encode(), mode, owner)


def _at_the_others(node, name, asked, back=False):
    """The machine is configured for the servers where they are now."""
    addresses, node.ports = (node.servers, PORTS) if back else (node.moved, MOVED)
    done = node.until(lambda: node.show(FIRST)[FIRST]["ActiveState"] == "active") and node.settled()
    node.case(f"{name}: configured", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", FIRST))
    node.case(f"{name}: the servers were asked", sorted(set(node.asked()[asked:])) == list(node.ports), node.asked()[asked:])
    _, variables = node.started("nstance-agent.service")
    found = tuple(variables.get(f"NSTANCE_SERVER_{which}_ADDR") for which in ("REGISTRATION", "AGENT"))
    node.case(f"{name}: the agent has them", found == addresses, found)
    copies = [line for line in node.get("/opt/podplane/etc/mutable.env").decode().splitlines() if line.startswith("NSTANCE_SERVER_")]
    node.case(f"{name}: no address was copied", not copies, copies)


DAMAGE = """set -e
systemctl stop zot.service
userdel zot
usermod --shell /bin/bash kube2iam
gpasswd --delete kubelet containerd
gpasswd --add kubelet adm
groupadd --system syslog
chmod a-x /opt/cni/bin/* /opt/fluent-bit/bin/fluent-bit /usr/bin/getsubids
echo other:1:65536 >>/etc/subuid
: >/etc/subgid
"""
ACCOUNTS = """for user in fluent-bit kube2iam kubelet zot; do echo "$(id -u "$user") $(id -nG "$user") $(getent passwd "$user" | cut -d: -f7)"; done
stat -c %a /opt/cni/bin/* /opt/fluent-bit/bin/fluent-bit /usr/bin/getsubids | sort -u
cat /etc/subuid /etc/subgid
pwck -qr; grpck -r
"""
MENDED = ["902 fluent-bit podplane syslog systemd-journal /usr/sbin/nologin", "903 kube2iam podplane /usr/sbin/nologin",
          "1000 kubelet containerd podplane /usr/sbin/nologin", "905 zot podplane /usr/sbin/nologin", "755",
          "kubelet:65536:7208960", "kubelet:65536:7208960"]


def restored(node):
    """Users, groups and modes are lost; the next configure gives them back."""
    name = f"{node.kind}, lost accounts and modes"
    code, said = node.run("sh", "-c", DAMAGE)
    node.case(f"{name}: are lost", code == 0, said)
    # getsubids, and what is in /opt/cni, belong to permissions; subordinate ids are written by configure.
    code, said = node.run("sh", "-c", "/opt/podplane/bin/permissions.sh && /opt/podplane/bin/configure.sh")
    node.case(f"{name}: configure", code == 0, said)
    _, said = node.run("sh", "-c", ACCOUNTS)
    found = [" ".join([*line.split()[:2], *sorted(line.split()[2:-1]), *line.split()[-1:]]) if " " in line else line for line in said.splitlines()]
    node.case(f"{name}: come back", found == MENDED, said)


def configured(node, name):
    """State after the first boot, however it was started."""
    node.owners(f"{name}: owners", {
        "/opt/env/nstance-agent.env": "640 root:nstance-agent", "/opt/env/kubelet.env": "600 root:root",
        "/opt/env/zot.env": "640 root:zot", "/opt/zot/etc/zot.yml": "640 root:zot", "/opt/env/fluent-bit.env": "640 root:fluent-bit",
        f"{AGENT}/identity/ca.crt": "600 nstance-agent:nstance-agent", f"{AGENT}/identity/nonce.jwt": "600 nstance-agent:nstance-agent",
        "/opt/podplane/etc/mutable.env": "600 root:root", "/opt/podplane/etc/detected.env": "600 root:root", MARKER: "600 root:root",
        "/run/containerd/containerd.sock": "660 root:containerd", "/home/admin/.ssh/authorized_keys": None, "/etc/sudoers.d/admin": None})
    programs(node, name)
    code, said = node.run("getent", "hosts", "kube-apiserver.podplane.internal")
    host = "127.0.0.1" if node.kind == "knc" else node.host
    # systemd-resolved answers from what it read some seconds ago: the file itself is looked at as well.
    lines = node.get("/etc/hosts").decode().splitlines()
    expected = f"{host} kube-apiserver.podplane.internal"
    node.case(f"{name}: /etc/hosts", code == 0 and said.split()[0] == host and expected in lines and "localhost" in " ".join(lines).split(), (said, lines))
    if node.sysctl:
        path, value = node.sysctl
        node.case(f"{name}: sysctl", node.run("cat", path)[1] == value, (path, value))


def programs(node, name):
    """How the services were started that need no certificate."""
    _, variables = node.started("nstance-agent.service")
    ipv4, ipv6 = node.addresses
    expected = {"NSTANCE_INSTANCE_ID": "one", "NSTANCE_INSTANCE_KIND": node.kind, "NSTANCE_INSTANCE_IPV4": ipv4,
                "NSTANCE_INSTANCE_IPV6": ipv6, "NSTANCE_RECV_DIR": f"{AGENT}/recv", "USER": "nstance-agent"}
    node.case(f"{name}: the agent's environment", expected.items() <= variables.items(), variables)
    arguments, variables = node.started("fluent-bit.service")
    # On AWS a role is assumed, with no keys.
    key = None if node.provider == "aws" else "writer"
    node.case(f"{name}: fluent-bit", arguments[1:] == ["-c", "/opt/fluent-bit/etc/fluent-bit.yml"] and variables.get("AWS_ACCESS_KEY_ID") == key,
              (arguments, variables))
    pid = node.systemctl("show", "-P", "MainPID", "fluent-bit.service").strip()
    groups = re.search(r"^Groups:(.*)$", node.run("cat", f"/proc/{pid}/status")[1], re.MULTILINE)
    adm = node.run("getent", "group", "adm")[1].split(":")[2]
    node.case(f"{name}: fluent-bit may read the log of cloud-init", groups and adm in groups.group(1).split(), groups)


def scripted(node):
    """After a first boot by a script of cloud-init that calls install.sh, configure.sh and restart.sh."""
    name = f"{node.kind}, script of cloud-init"
    code, said = node.run("cloud-init", "status", "--long")
    node.case(f"{name}: succeeds", code == 0 and node.get("/run/reference-user-data.done") is not None, said)
    node.case(f"{name}: no unit has failed", not node.failed(), node.systemctl("--failed"))
    attempts = node.journal("-u", FIRST).count(f"Starting {FIRST}")
    node.case(f"{name}: was not overtaken", attempts == 0 and node.asked() == list(PORTS), (attempts, node.asked()))
    found = node.states("nstance-agent.service", "containerd.service", "fluent-bit.service", "nstance-recv-watch.path", "hosts-refresh.timer")
    node.case(f"{name}: services run", set(found.values()) == {("active", "enabled")}, found)
    node.case(f"{name}: the forwarder runs", node.states("forwarder.service")["forwarder.service"][0] == "active", node.journal("-u", "forwarder.service"))
    configured(node, name)


def certificates(node):
    """The agent delivers certificates and keys for all services."""
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
    node.case(f"{name}: done", done and not node.failed(), node.systemctl("--failed") + node.journal("-u", WATCH))
    placed = {f"{PUB if file.endswith('.pub') else CRT}/{file}": "640 root:podplane" for file in files if not file.endswith(".key")}
    placed |= {f"{KEY}/kube-apiserver/{file}": "640 root:kube-apiserver" for file in files if file.endswith(".key")}
    contents = {path: files[pathlib.Path(path).name] for path in placed}
    for service in names:
        folder, group = SERVICES.get(service, (service.split(".")[0],) * 2)
        placed[f"{KEY}/{folder}/{service}.key"] = f"640 root:{group}"
        contents[f"{KEY}/{folder}/{service}.key"] = node.authority.files[f"{service}.key"]
    placed |= {f"{CRT}/stranger.crt": None}
    node.owners(f"{name}: in their places", placed)
    expected = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    found = node.digests(*expected)
    node.case(f"{name}: as they were sent", found == expected, sorted(dict(found.items() ^ expected.items())))
    changed = node.changed(before)
    node.case(f"{name}: exactly the receivers started anew", changed == set(node.services), changed ^ set(node.services))
    found = {unit: state[0] for unit, state in node.states(*node.services).items()}
    node.case(f"{name}: all run", set(found.values()) == {"active"}, found)
    flags(node, name)


def flags(node, name):
    """How the services were started that needed certificates."""
    for service, expected in cluster.arguments(*node.addresses).items():
        if f"{service}.service" in node.services:
            arguments, _ = node.started(f"{service}.service")
            found = dict((argument.removeprefix("--") + "=").split("=", 1) for argument in arguments[1:])
            found = {flag: value.removesuffix("=") for flag, value in found.items()}
            node.case(f"{name}: flags of {service}", found == expected and len(arguments) == len(expected) + 1, found.items() ^ expected.items())
    arguments, variables = node.started("zot.service")
    node.case(f"{name}: zot", arguments[1:] == ["serve", "/opt/zot/etc/zot.yml"] and variables.get("AWS_ACCESS_KEY_ID") == "reader",
              (arguments, variables))


def switched(node):
    """Telemetry and registry off, a key for admin; and one service that does not start. Then all on again."""
    broken = (node.services + ["kubelet.service"])[3]
    drop = f"/etc/systemd/system/{broken}.d"
    node.run("mkdir", drop)
    node.put(f"{drop}/broken.conf", b"[Service]\nRestart=no\nExecStartPre=/bin/false\n", 0o644, "root:root")
    before = node.invocations()
    done = node.deliver({"mutable.env": environment({"TELEMETRY_ENABLED": "false", "REGISTRY_ENABLED": "false", "SSH_AUTHORIZED_KEYS": ADMIN}).encode()})
    name = f"{node.kind}, switched off"
    expected = {unit: ("active", "enabled") for unit in [*node.services, *UNTOUCHED]} | {
        "fluent-bit.service": ("inactive", "disabled"), "zot.service": ("inactive", "disabled"), broken: ("failed", "enabled")}
    found = node.states(*expected)
    node.case(f"{name}: states", done and found == expected, {unit: state for unit, state in found.items() if state != expected[unit]})
    node.case(f"{name}: the service that fails is shown", {broken} <= node.failed() <= {broken, WATCH}, node.failed())
    others = {unit for unit in node.services if expected[unit][0] == "active"}
    changed = node.changed(before)
    node.case(f"{name}: the others started anew", changed & {*others, *UNTOUCHED} == others | {"containerd.service"}, changed)
    containerd(node, name, before)
    node.owners(f"{name}: owners", {"/home/admin/.ssh": "700 admin:admin", "/home/admin/.ssh/authorized_keys": "600 admin:admin",
                                    "/etc/sudoers.d/admin": "440 root:root", HOSTS: None, "/opt/podplane/etc/mutable.env": "600 root:root"})
    node.case(f"{name}: admin may log in", node.get("/home/admin/.ssh/authorized_keys") == f"{ADMIN}\n".encode())
    code, said = node.run("runuser", "-u", "admin", "--", "sudo", "-n", "id", "-u")
    node.case(f"{name}: admin may do all", code == 0 and said.strip() == "0", said)
    node.case(f"{name}: admin has a shell", node.run("getent", "passwd", "admin")[1].strip().endswith(":/home/admin:/bin/bash"))

    node.run("rm", "-r", drop)
    before = node.invocations()
    done = node.deliver({"mutable.env": environment({"TELEMETRY_ENABLED": "true", "REGISTRY_ENABLED": "true", "SSH_AUTHORIZED_KEYS": ""}).encode()})
    name = f"{node.kind}, switched on"
    found = node.states(*node.services)
    node.case(f"{name}: all run again", done and set(found.values()) == {("active", "enabled")} and not node.failed(), (found, node.failed()))
    node.owners(f"{name}: owners", {"/home/admin/.ssh/authorized_keys": None, "/etc/sudoers.d/admin": None, HOSTS: "644 root:root"})
    containerd(node, name, before)


def second_boot(node, number="second"):
    """Boots again, where there is nothing new."""
    before, asked, configured = node.snapshot(), len(node.asked()), node.console().count("vmbake-firstboot: configured")
    running = [unit for unit, state in node.states(*node.services, *UNTOUCHED).items() if state[0] == "active"]
    node.reboot()
    after = node.snapshot()
    name = f"{node.kind}, {number} boot"
    node.case(f"{name}: no file was written", before == after and len(before) > 1000, sorted(dict(before.items() ^ after.items())))
    found = {unit: state[0] for unit, state in node.states(*running).items()}
    node.case(f"{name}: all run", set(found.values()) == {"active"} and not node.failed(), (found, node.failed()))
    node.case(f"{name}: the servers were asked", sorted(set(node.asked()[asked:])) == list(node.ports), node.asked()[asked:])
    node.case(f"{name}: the console says so", node.console().count("vmbake-firstboot: configured") == configured + 1, node.console()[-2000:])


def third_boot(node):
    """As the second, with all services running."""
    second_boot(node, "third")


def resumed(node):
    """A power cut ended recv-watch when it had just removed the trigger; boots again."""
    node.put(f"{AGENT}/recv/mutable.env", environment({"SSH_AUTHORIZED_KEYS": ADMIN}).encode(), 0o600, "nstance-agent:nstance-agent")
    mark = "/var/lib/vmbake/receiving"
    node.run("touch", mark)
    node.reboot()
    name = f"{node.kind}, boot after a run that was killed"
    expected = {"/home/admin/.ssh/authorized_keys": "600 admin:admin", mark: None}
    node.case(f"{name}: takes what it left", node.owned(*expected) == expected and not node.failed(), node.journal("-u", WATCH))
