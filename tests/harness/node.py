"""A node of a cluster in qemu: a machine of a baked image with user data by `vmbake user-data render`, a server of its cluster on the host,
and a capture of all that it sends.
"""

import pathlib
import subprocess

from harness import cluster, cluster_node, fleet, nstance
from harness.paths import CASES
from harness.shell import Lost
from harness.traffic import Traffic
from harness.vm import PATIENCE, VMBAKE, Vm

# Kinds of images that are nodes of a cluster.
CLUSTER = ("knc", "knd")
# Names that a machine may ask for: the time servers of Debian, and its own, which the resolver wants to be the only one on the link.
KNOWN = [r"\d\.debian\.pool\.ntp\.org", r"(one|given)(\..*)?"]
# The name that counts is that of the user data.
META = "instance-id: iid-one\nlocal-hostname: given\n"
# Instead of a text: the output of the command line of a cluster; the rest is delivered.
BARE = "bare"
# Also instead of a text: an Nstance server's rendering of a template, with all settings.
NSTANCE = "nstance"


class Node(cluster_node.Node, Vm):
    """`settings` of the user data count more than those of cluster.py; `script` is user data that stand for themselves, BARE, or NSTANCE. `host`
    stands for the load balancer of the API: an address is a name too."""

    addresses, host, sysctl = ("10.0.2.15", "fec0::5054:ff:fe12:3456"), nstance.ADDRESS, None

    def __init__(self, image, folder, report, kind=None, settings=(), script=None, meta_data=META, more=(), **options):
        self.kind, self.report, folder = kind or pathlib.Path(image).name.split(".")[0], report, pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority, self.capture = cluster.Authority(), folder / "traffic.pcap"
        self.token = self.authority.token("one")
        self.server = nstance.Server(self.authority, folder)
        servers = {f"NSTANCE_SERVER_{kind.upper()}_ADDR": f"{nstance.ADDRESS}:{port}" for port, kind in nstance.PORTS.items()}
        self.servers = tuple(servers.values())
        self.moved = tuple(f"{nstance.ADDRESS}:{port}" for port in nstance.MOVED)
        self.settings = cluster.delivery(KUBE_API_INTERNAL_LB_HOSTNAME=self.host)
        self.values = cluster.bare(self.authority, **servers) | (self.settings if script != BARE else {}) | dict(settings)
        more = [*more, "-object", f"filter-dump,id=capture,netdev=net0,file={self.capture}"]
        text = self._of_template(folder) if script == NSTANCE else self._rendered(folder) if script in (None, BARE) else self._filled(script)
        # With a way out and a resolver: what a machine does not ask for there, it does not ask for anywhere.
        super().__init__(image, folder, user_data=text, meta_data=meta_data, network="user", guests=self.server.guests(), more=more, **options)
        self.hostname = self.values["INSTANCE_ID"]

    def _rendered(self, folder):
        values = dict(self.values)
        # It travels as a file.
        values.pop("NSTANCE_CA_CERT")
        for name, content in {"env": cluster.environment(values), "nonce": self.token, "ca": self.authority.files["ca.crt"].decode()}.items():
            (folder / name).write_text(content)
        command = [VMBAKE, "user-data", "render", "--kind", self.kind, *(word for name in ("env", "nonce", "ca") for word in (f"--{name}", folder / name))]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def _of_template(self, folder):
        """As the server makes them for this machine; Go's text/template fills the template."""
        values = dict(self.values)
        registration, agent = self.servers
        data = {
            "Cluster": {"ID": values.pop("CLUSTER_ID"), "CACert": self.authority.files["ca.crt"].decode()},
            "Server": {"Shard": "home-1", "RegistrationAddr": registration, "AgentAddr": agent, "OperatorAddr": ""},
            "Provider": {"Kind": "local", "Region": values.pop("PROVIDER_REGION"), "Zone": values.pop("PROVIDER_ZONE")},
            "Instance": {"ID": values.pop("INSTANCE_ID"), "Kind": self.kind, "Arch": "amd64", "Type": values.pop("PROVIDER_INSTANCE_TYPE")},
            "Vars": {"bucket": values["NETSY_BUCKET"]}, "Image": {}, "Nonce": self.token,
        }
        for name in ("NSTANCE_CA_CERT", "NSTANCE_SERVER_REGISTRATION_ADDR", "NSTANCE_SERVER_AGENT_ADDR"):
            del values[name]
        values |= {"REGISTRY_HOSTNAME": "registry.{{ CLUSTER_ID }}.example", "NETSY_BUCKET": "{{ .Vars.bucket }}"}
        (folder / "env").write_text(cluster.environment(values))
        command = [VMBAKE, "user-data", "render", "--kind", self.kind, "--template", "nstance", "--env", folder / "env"]
        template = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return fleet.execute(fleet.build(folder), template, data)

    def _filled(self, script):
        """A script as user data, instead of vmbake's rendering."""
        text = pathlib.Path(script).read_text()
        return text.replace("@env@\n", cluster.environment(self.values)).replace("@nonce@", self.token)

    def reboot(self, patience=PATIENCE):
        """Returns once the boot has ended, as scenarios look at what it left."""
        super().reboot(patience)
        ended, said = self.booted(patience)
        if not ended:
            raise Lost(f"the boot does not end: {said}")

    def case(self, name, ok, said=""):
        self.report(name, bool(ok), said)

    def asked(self):
        return [connection.port for connection in self.server.connections]

    def move(self):
        self.server.move()

    def strangers(self):
        """Forbidden network requests of the machine."""
        return Traffic(self.capture).strangers([*self.servers, *self.moved], KNOWN)

    def close(self):
        super().close()
        self.server.close()


def machine(case, image, folder, check, say):
    """The machine of a case: a node of a cluster, where the kind of image has one and the case has no custom user data."""
    values, folder = case.values, pathlib.Path(folder)
    options = {name: values[name] for name in ("firmware", "size", "memory", "cpus")} | {"heard": lambda seconds, what: say(what, seconds)}
    text = values["user-data"]
    script = CASES / text if text and text.endswith(".sh") else text if text in (BARE, NSTANCE) else None
    if values["image"] in CLUSTER and (script or not text):
        return Node(image, folder, check, values["image"], values["settings"], script, **options)
    vm = Vm(image, folder, user_data=text, **options)
    vm.case = check
    return vm


def quiet(node):
    """No connection in all of the machine's life, but to the server of the cluster."""
    traffic = Traffic(node.capture)
    known = {f"{flow.address}:{flow.port}" for flow in traffic.flows}
    node.case(f"{node.kind}, network: nothing but housekeeping, DNS, NTP and the servers of the cluster", not node.strangers(), node.strangers())
    # Else the capture was none.
    node.case(f"{node.kind}, network: the capture has the servers of the cluster", set(node.servers) <= known, (known, traffic.frames))


def trusted(node):
    """The agent's user trusts only the servers of the cluster."""
    node.put("/run/stranger.crt", cluster.Authority().files["ca.crt"])
    before = len(node.server.connections)
    found = {}
    for port, kind in nstance.PORTS.items():
        for authority in (f"{cluster_node.AGENT}/identity/ca.crt", "/run/stranger.crt"):
            code, said = node.shell("echo hello | setpriv --reuid=nstance-agent --regid=nstance-agent --init-groups "
                                    "openssl s_client -quiet -nocommands -no_ign_eof -verify_return_error "
                                    f"-CAfile {authority} -verify_ip {nstance.ADDRESS} -servername {nstance.NAMES[0]} "
                                    f"-connect {nstance.ADDRESS}:{port}")
            found[kind, authority] = (code == 0, said)
    # A connection is written down when it has ended on the host's side too.
    node.until(lambda: len(node.server.connections) >= before + len(found))
    right = {(kind, authority): authority.startswith(cluster_node.AGENT) for kind, authority in found}
    node.case(f"{node.kind}, TLS: the servers are trusted by the CA of the user data alone", {key: ok for key, (ok, _) in found.items()} == right, found)
    talks = node.server.connections[before:]
    seen = sorted((connection.port, connection.kind, connection.name) for connection in talks)
    expected = sorted((port, kind, nstance.NAMES[0]) for port in nstance.PORTS for kind in ("tls", "refused"))
    node.case(f"{node.kind}, TLS: the servers saw it", seen == expected, [str(connection) for connection in talks])


IDENTITY = """set -e
echo machine-id: $(cat /etc/machine-id)
echo random-seed: $(sha256sum </var/lib/systemd/random-seed)
for key in /etc/ssh/ssh_host_*_key.pub; do echo $(basename $key): $(cut -d' ' -f2 $key); done
"""


def twins(vm):
    """Switches the machine off, and boots another one of the same image with the same user data: nothing that tells who it is may be the same, but
    what the user data themselves say."""
    found = [vm.shell(IDENTITY)]
    vm.poweroff()
    with Vm(vm.image, vm.folder / "twin", user_data=vm.seed["user-data"], meta_data=META.replace("one", "two"), guests=vm.guests, **vm.options) as twin:
        twin.boot()
        ended, said = twin.booted()
        vm.case("twins: the other one boots", ended, said)
        found.append(twin.shell(IDENTITY))
        twin.poweroff()
    vm.case("twins: both have an identity", not any(code for code, _ in found), found)
    one, two = (dict(line.split(": ", 1) for line in said.splitlines() if ": " in line) for _, said in found)
    vm.case("twins: of the same parts", set(one) == set(two) and len(one) >= 4, (one, two))
    same = {name: value for name, value in one.items() if two.get(name) == value}
    vm.case("twins: no part of it is the same", not same, same)
