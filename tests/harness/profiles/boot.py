"""Machines of imported profiles with a fake API server, and of OSM itself: their network requests, and the kubelet's arguments.

The network of a machine leads nowhere but to the API server, and every packet of it is kept.
"""

import base64
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import threading

import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from harness import vm
from harness.paths import HARNESS, ROOT
from harness.profiles import api
from harness.profiles.lab import DEPLOYMENT, PROFILE, skipped
from harness.profiles.proxy import URL, Proxy
from harness.report import case, failures
from harness.shell import Lost
from harness.traffic import Traffic

BRIDGE = HARNESS / "profiles/bridge.py"
HOST, ADDRESS = "worker-one", "10.0.2.15"
# Where a folder of its files, and a checkout of OSM, have its profile for Ubuntu.
PLACES = ("osm/osp-ubuntu.yaml", "deploy/osps/default/osp-ubuntu.yaml")
# Of the addresses that it gives itself.
OWN = ":5054:ff:fe12:3456"
META = f"instance-id: iid-one\nlocal-hostname: {HOST}\n"
TAINTS, DNS = "example.org/new=true:NoSchedule", "10.96.0.10,fd00::10"
# Names that a machine may ask for: the time servers of Debian, by systemd-timesyncd, and its own, which the resolver wants to be the only one on the link.
# In addition to these traffic.py ignores DHCP, ARP, and the talk of neighbours and groups, without which there is no network.
KNOWN = [r"\d\.debian\.pool\.ntp\.org", rf"{HOST}(\..*)?"]
# Emulated machines of OSM's own way install for many minutes.
PATIENCE = 3000
# What OSM offers is for containerd 2; an image gets what the containerd of Debian reads. That it runs is judged.
CONVERTED = {"osp-ubuntu": {"/etc/containerd/config.toml"}}
# Of the files of OSM's configuration: those that have done their work when there is an image.
DONE = {"/usr/local/sbin/set-up", "/etc/systemd/system/set-up.service", "/opt/bin/setup", "/etc/systemd/system/setup.service", "/opt/bin/supervise.sh",
        "/usr/local/sbin/keep-trying", "/usr/local/sbin/fetch-provisioning", "/etc/systemd/system/fetch-provisioning.service", "/opt/bin/bootstrap",
        "/etc/systemd/system/bootstrap.service"}


class Machine(vm.Vm):
    """A machine in a separate network: it has a gateway and a name server, as any machine, but reaches only the servers of this
    test, which bridges reach by the file system. What it does not ask for there, it does not ask for anywhere."""

    def __init__(self, lab, name, image, user_data, servers):
        folder = lab.folder / f"machine-{name}"
        folder.mkdir()
        self.doors = {address: Door(folder / f"door-{number}", target) for number, (address, target) in enumerate(servers.items())}
        vm.VMBAKE = lab.vmbake
        capture = ["-object", f"filter-dump,id=capture,netdev=net0,file={folder / 'traffic.pcap'}"]
        super().__init__(image, folder, user_data=user_data, meta_data=META, guests=servers, more=capture, network="user", firmware="direct", cpus="2", size="+3G")

    def _network(self):
        forwards = "".join(f",guestfwd=tcp:{address}-cmd:{BRIDGE} {door.path}" for address, door in self.doors.items())
        return ["-netdev", f"user,id=net0{forwards}", "-device", "virtio-net-pci,netdev=net0,romfile="]

    def _command(self):
        space = ["unshare", "--net", *([] if os.getuid() == 0 else ["--map-root-user"])]
        # qemu talks to its bridges by loopback.
        return [*space, "sh", "-c", 'PATH=$PATH:/sbin:/usr/sbin ip link set lo up && exec "$@"', "sh", *super()._command()]

    def close(self):
        super().close()
        for door in self.doors.values():
            door.close()
        if failures:
            logs = ROOT / "dist/logs" / f"profiles-{self.folder.name}"
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir(parents=True)
            for path in [*self.folder.glob("*.log"), *self.folder.glob("*.pcap")]:
                shutil.copy(path, logs)
            print(f"      logs are in {logs}", flush=True)


class Door:
    """A socket in the file system that leads to a server of this host: it is reached from networks that have no way to that."""

    def __init__(self, path, target):
        self.path, self.target = path, target.rsplit(":", 1)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(path))
        self.socket.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _serve(self):
        while True:
            try:
                machine, _ = self.socket.accept()
            except OSError:
                return
            server = socket.create_connection((self.target[0], int(self.target[1])))
            for source, sink in (machine, server), (server, machine):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()


def pump(source, sink):
    """Until one side says no more."""
    try:
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # The machine went off, or the server.
        pass


class Sort:
    """A sort of machines: a profile with its deployment, what its kubelet calls the address and name of a machine, and the kubeconfig that it begins with, with the
    mode that the profile's script gives it."""

    def __init__(self, name, profile, deployment, variables, kubeconfig, *more):
        self.name, self.profile, self.deployment, self.variables, self.kubeconfig, self.more = name, profile, deployment, variables, kubeconfig, more


def vectors():
    """The directory with OSM's files."""
    return pathlib.Path(os.environ.get("VMBAKE_VECTORS") or "/nonexistent")


def own():
    """Our profile."""
    return Sort("worker", PROFILE, DEPLOYMENT, {"NODE_ADDRESS": ADDRESS, "NODE_NAME": HOST}, ("/etc/kubernetes/bootstrap.kubeconfig", 0o600))


def sorts(lab):
    """Our profile, and the one of OSM where it is at hand."""
    yield own()
    theirs = next((path for path in map(vectors().joinpath, PLACES) if path.is_file()), None)
    if not theirs:
        skipped("OSM's profile for Ubuntu: VMBAKE_VECTORS names no folder that has it")
        return
    deployment = lab.folder / "ubuntu.yaml"
    text = DEPLOYMENT.read_text().replace("operatingSystem: debian", "operatingSystem: ubuntu")
    deployment.write_text(text.replace("profile: worker", "profile: osp-ubuntu"))
    rules = ROOT / "examples/profiles/ubuntu-on-debian.json"
    yield Sort("osp-ubuntu", theirs, deployment, {"KUBELET_NODE_IP": ADDRESS, "KUBELET_HOSTNAME": HOST},
               ("/etc/kubernetes/bootstrap-kubelet.conf", 0o644), "--as", "debian-13", "--rules", rules)


def cluster_options(folder, server, *more):
    """Options of OSM for the fake cluster, for `profile render`."""
    files = {"api-server-token": api.OSM_TOKEN, "kubernetes-ca-bundle": server.authority.pem, "bootstrap-kubeconfig": server.kubeconfig()}
    for name, text in files.items():
        (folder / name).write_text(text)
    values = {name: folder / name for name in files} | {"server-url": api.SERVER, "cluster-dns": DNS, "initial-taints": TAINTS}
    return [word for name, value in [*values.items(), *more] for word in ("--set", f"{name}={value}")]


def configuration(lab, sort, options):
    """OSM's rendering of the profile: {path: (mode, content)} of both phases; later ones take precedence."""
    said = lab.must("profile", "render", sort.profile, "--machine-deployment", sort.deployment, *options)
    spec = yaml.safe_load(said)["spec"]
    files = [file for phase in ("bootstrapConfig", "provisioningConfig") for file in spec[phase]["files"]]
    return {file["path"]: (int(str(file.get("permissions") or 644), 8), file["content"]["inline"]["data"]) for file in files}


def command(unit, variables):
    """The arguments with which systemd starts a unit's program."""
    lines = re.sub(r"\\\n", " ", unit).splitlines()
    start = next(line for line in lines if line.startswith("ExecStart="))
    return [re.sub(r"\$\{(\w+)\}", lambda found: variables[found.group(1)], word) for word in shlex.split(start.partition("=")[2])][1:]


def asked(machine, server, patience=PATIENCE):
    """Waits for the kubelet's request."""
    machine.until(lambda: server.signing_requests() or not machine.alive(), patience)
    return bool(server.signing_requests())


def said_of(machine, server, name):
    """Why there is no request, as far as the machine knows."""
    units = "systemctl --failed --no-legend; journalctl --no-pager -b -n 60 -u kubelet -u first-boot-env -u fetch-provisioning -u set-up"
    return [request[:4] for request in server.requests], machine.shell(units)[1] if machine.alive() else machine.console()[-3000:]


def judged_request(name, server):
    """Requests of the kubelet to the API server."""
    requests = server.requests
    asked_for = [(request.method, request.path) for request in requests]
    case(f"{name}: the kubelet asks for a certificate, once, and nothing else", asked_for == [("POST", api.SIGNING)], asked_for)
    request = server.signing_requests()[0]
    case(f"{name}: with the bootstrap token", request.token == api.BOOTSTRAP_TOKEN and request.status == 201, request)
    spec = request.body["spec"]
    signing = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
    subject = {attribute.oid: attribute.value for attribute in signing.subject}
    right = {NameOID.COMMON_NAME: f"system:node:{HOST}", NameOID.ORGANIZATION_NAME: "system:nodes"}
    proven = signing.is_signature_valid and signing.public_key().curve.name == "secp256r1"
    case(f"{name}: as a node, with a separate key", subject == right and proven, signing.subject)
    right = ("CertificateSigningRequest", "kubernetes.io/kube-apiserver-client-kubelet")
    case(f"{name}: of the signer of kubelets", (request.body["kind"], spec["signerName"]) == right, spec)


def judged_machine(name, machine, sort, files):
    """State of the machine, compared with OSM's rendering of the profile."""
    state = json.loads(machine.get("/run/kubelet.json"))
    wanted = command(files["/etc/systemd/system/kubelet.service"][1], sort.variables)
    case(f"{name}: the kubelet's arguments are those of OSM's unit", state["arguments"] == wanted, (state["arguments"], wanted))
    wrong = {}
    for path, (mode, content) in files.items():
        if path in DONE | CONVERTED.get(name, set()):
            continue
        code, said = machine.run("stat", "-c", "%a %U:%G", path)
        found = (machine.get(path) or b"").decode(errors="replace")
        if code or said.strip() != f"{mode:o} root:root" or found.strip() != content.strip():
            wrong[path] = (said, found[:500], f"{mode:o}", content[:500])
    case(f"{name}: its files are those of OSM, {len(files)} of them", not wrong, json.dumps(wrong, indent=1))
    code, said = machine.shell("systemctl is-active containerd.service kubelet.service")
    case(f"{name}: containerd and the kubelet run", code == 0, said)
    code, said = machine.shell("systemctl --failed --no-legend")
    case(f"{name}: no unit failed", not said.strip(), said)
    code, said = machine.shell("systemctl show -P NRestarts kubelet.service")
    case(f"{name}: the kubelet is started once", said.strip() == "0", said)


def judged_traffic(name, machine, server):
    traffic = Traffic(machine.folder / "traffic.pcap")
    # What has no answer from the name server is asked there once more, by TCP, which is not accepted. What goes to the machine's own address is an answer.
    answers = {f"icmpv6 {flow.address} {flow.port}" for flow in traffic.flows if flow.protocol == "icmpv6" and flow.address.endswith(OWN)}
    strangers = [stranger for stranger in traffic.strangers([*server.guests(), "10.0.2.3:53"], KNOWN) if stranger not in answers]
    case(f"{name}: nothing but the API server is asked on the network", not strangers, strangers)
    known = {f"{flow.address}:{flow.port}" for flow in traffic.flows}
    # Else the capture was none.
    case(f"{name}: the capture has the API server", set(server.guests()) <= known, (known, traffic.frames))


def seconds(machine):
    """From the first lease of an address to the answer of the API server."""
    _, said = machine.shell("journalctl -b -o json -u systemd-networkd --no-pager")
    entries = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    lease = next((int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6 for entry in entries if "DHCPv4 address" in str(entry["MESSAGE"])), None)
    submitted = json.loads(machine.get("/run/kubelet.json"))["submitted"]
    return None if lease is None else submitted - lease


def joined(lab, sort):
    """Imports, bakes and boots; how long it took from the network to the request."""
    out, name = lab.folder / sort.name, sort.name
    status, kind, said = lab.imports(out, *sort.more, *lab.pins(), profile=sort.profile, deployment=sort.deployment)
    case(f"{name}: is imported", status == 0, said)
    if status:
        return None
    kind = kind.strip()
    image = lab.bake(out, kind)
    with api.Server(lab.folder) as server:
        values = {"BOOTSTRAP_KUBECONFIG": server.kubeconfig(), "KUBERNETES_CA": server.authority.pem}
        lines = [f"{key}='{base64.b64encode(text.encode()).decode()}'" for key, text in values.items()]
        (lab.folder / "settings").write_text("\n".join([*lines, f"CLUSTER_DNS='{DNS}'", f"INITIAL_TAINTS='{TAINTS}'"]) + "\n")
        user_data = lab.must("user-data", "render", "--kind", kind, "--layers", out / "layers", "--env", lab.folder / "settings")
        print(f"      {name}: {len(user_data.encode())} bytes of user data", flush=True)
        files = configuration(lab, sort, cluster_options(lab.folder, server))
        path, mode = sort.kubeconfig
        files[path] = mode, server.kubeconfig()
        with Machine(lab, name, image, user_data, server.guests()) as machine:
            machine.boot()
            came = asked(machine, server, 900)
            case(f"{name}: the machine joins", came, "" if came else said_of(machine, server, name))
            if not came:
                return None
            case(f"{name}: the boot ends", *machine.booted())
            # The answer is on its way when the request is known.
            machine.until(lambda: "submitted" in json.loads(machine.get("/run/kubelet.json")))
            judged_request(name, server)
            judged_machine(name, machine, sort, files)
            judged_traffic(name, machine, server)
            took = seconds(machine)
            machine.poweroff()
    image.unlink()
    print(f"      {name}: {took} s from the network to the request", flush=True)
    return took


def installed(lab, sort):
    """OSM's own way: the base image installs everything, from mirrors on loopback; how long it took."""
    with api.Server(lab.folder) as server, Proxy(lab.folder, lab.sites / "site") as proxy:
        (lab.folder / "proxy.pem").write_text(proxy.authority.pem)
        options = cluster_options(lab.folder, server, ("node-http-proxy", URL), ("node-no-proxy", api.ADDRESS), ("host-ca-bundle", lab.folder / "proxy.pem"))
        render = ("profile", "render", sort.profile, "--machine-deployment", sort.deployment, *options)
        texts = {phase: lab.must(*render, "--user-data", phase).replace("<MACHINE_NAME>", HOST) for phase in ("bootstrap", "provisioning")}
        instance = next(iter(json.loads((lab.folder / f"{sort.name}/profile.lock.json").read_text())["instances"].values()))["values"]
        server.secrets = {instance["SecretName"]: {"cloud-config": texts["provisioning"]},
                          instance["BootstrapKubeconfigSecretName"]: {"kubeconfig": server.kubeconfig()}}
        with Machine(lab, "osm", lab.base, texts["bootstrap"], server.guests() | proxy.guests()) as machine:
            machine.boot()
            came = asked(machine, server)
            case("OSM's own way joins, too", came, "" if came else (said_of(machine, server, "osm"), proxy.refused, proxy.served[-20:]))
            if not came:
                return None
            machine.until(lambda: "submitted" in json.loads(machine.get("/run/kubelet.json")))
            took = seconds(machine)
            machine.poweroff()
        print(f"      OSM's own way: {took} s from the network to the request, {proxy.waited:.1f} s of which the proxy waited for the archive", flush=True)
    return took


def answering(name, run, *arguments):
    """Result of a machine; None if it is lost."""
    try:
        return run(*arguments)
    except Lost as lost:
        case(f"{name}: the machine answers", False, lost)
        return None


def booted(lab):
    """Machines of each profile."""
    for sort in sorts(lab):
        answering(sort.name, joined, lab, sort)


def compared(lab):
    """A machine of our profile, and one that OSM creates from the base image."""
    fast = answering("worker", joined, lab, own())
    slow = fast and answering("OSM's own way", installed, lab, own())
    if slow:
        print(f"      {slow / fast:.1f} times as fast as OSM's own way; the bar is 5", flush=True)
