"""The first-boot program, killed at its system calls: checks of the remains and of the next run.

strace kills the program before, or lets fail, a write, rename, sync, creation, change of owner or mode, removal or mkdir. Then every file must be absent, the
old or the new one, a run that failed must leave no temporary file, and the next run must come to the same tree (path, type, mode, owner, content) as an
undisturbed one. Points are taken in fixed steps; the slow test takes each. Eight runs at once must come to that tree too. Needs root, for owners.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

import pytest

import firstboot
from harness.paths import TARGET
from harness.run import must, run

pytestmark = pytest.mark.needs("strace", "root")

# Of the calls that change something, those that a static program for x86-64 or arm64 makes.
CALLS = "openat,write,writev,pwrite64,rename,renameat,renameat2,fsync,fdatasync,fchown,fchownat,chown,fchmod,fchmodat,chmod,unlinkat,mkdirat,mkdir,ftruncate,utimensat"
# Of a scenario, unless all are wanted: some 440 together, which take some 20 s on two busy cores.
SAMPLES = 140
TEMPORARY = ".vmbake"
RECORD = "var/lib/vmbake/firstboot.json"

PASSWD = "root:x:0:0::/root:/bin/bash\nzot:x:991:991::/:\nkubelet:x:1001:1001::/:\n"
GROUP = "root:x:0:\npodplane:x:700:zot,kubelet\nzot:x:991:\nkubelet:x:1001:\n"
MANIFEST = {"vmconfig": {"kind": "crash", "version": "1", "os": {"name": "debian-13", "arch": "amd64"}}}
ROUTE = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "ens3\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "ens3\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
)
TRIE = "Local:\n  |-- 10.0.2.15\n     /32 host LOCAL\n"
SERVER = '{"listen": {{ INSTANCE_IPV4 ~ \':5000\' }}, "name": {{ REGISTRY_HOSTNAME }}}\n'

ETC, SHARE = "/opt/podplane/etc", "/opt/podplane/share"


def owned(mode, owner="root", group="root"):
    return {"mode": mode, "owner": owner, "group": group}


def environment(*names):
    return {"environment": [{"name": name, "value": f"{{{{ {name} }}}}"} for name in names]}


PLAN = {
    "inputs": {
        "user_data": f"{ETC}/user-data.env",
        "detected": f"{ETC}/detected.env",
        "mutable": f"{ETC}/mutable.env",
        "defaults": f"{SHARE}/defaults/mutable.env",
        "marker": "/opt/podplane/bootstrap.done",
    },
    "variables": {
        "INSTANCE_ID": {"required": True},
        "KEYS": {"mutable": True, "aliases": ["KEY"]},
        "LOG_LEVEL": {"mutable": True, "default": "2", "format": "number"},
        "REGISTRY_ENABLED": {"mutable": True, "default": "true", "format": "boolean"},
        "REGISTRY_HOSTNAME": {"mutable": True, "default": "registry.example", "format": "hostname"},
    },
    "detect": [{"name": "INSTANCE_IPV4", "value": "{{ ipv4 }}"}, {"name": "INSTANCE_NETDEV", "value": "{{ device }}"}],
    "checks": [{"that": "INSTANCE_IPV4", "otherwise": "no IPv4 address"}],
    "directories": {
        "/opt": owned("0750", group="podplane"),
        "/opt/env": owned("0750", group="podplane"),
        "/opt/key": owned("0710", group="podplane"),
        "/opt/zot": owned("0700", "zot", "zot"),
        "/opt/zot/etc": owned("0700", "zot", "zot"),
        "/etc/containerd": owned("0755"),
        "/etc/containerd/certs.d": owned("0755"),
    },
    "modes": {"/opt/zot/zot": owned("0755")},
    "optional_modes": {"/opt/key/nonce": owned("0600", "zot", "zot")},
    "files": [
        {"path": "/opt/env/zot.env", "mode": "0640", "group": "zot", "content": environment("INSTANCE_ID", "INSTANCE_IPV4", "REGISTRY_ENABLED", "REGISTRY_HOSTNAME")},
        {"path": "/opt/env/kubelet.env", "mode": "0600", "content": environment("INSTANCE_ID", "LOG_LEVEL")},
        {"path": "/opt/zot/etc/zot.json", "mode": "0640", "group": "zot", "when": "REGISTRY_ENABLED == 'true'", "content": {"template": {"file": f"{SHARE}/zot.json", "format": "json"}}},
        {
            "path": "/etc/containerd/certs.d/{{ REGISTRY_HOSTNAME }}/hosts.toml",
            "mode": "0644",
            "directory": owned("0755"),
            "when": "REGISTRY_ENABLED == 'true'",
            "content": {"text": "server = '{{ REGISTRY_HOSTNAME }}'\n"},
        },
        {"path": "/opt/zot/etc/keys", "mode": "0600", "owner": "zot", "group": "zot", "when": "KEYS", "content": {"text": "{% for key in KEYS|lines %}\n{{ key }}\n{% endfor %}\n"}},
    ],
    "blocks": [{"path": "/etc/hosts", "name": "crash", "text": "{{ INSTANCE_IPV4 }} {{ REGISTRY_HOSTNAME }}\n"}],
}


def write(root, path, content, mode=0o644):
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(mode)


def prepare(root):
    """A machine before its first boot."""
    for path, content in [
        ("/etc/passwd", PASSWD),
        ("/etc/group", GROUP),
        ("/etc/hosts", "127.0.0.1 localhost\n"),
        ("/proc/net/route", ROUTE),
        ("/proc/net/fib_trie", TRIE),
        ("/proc/sys/kernel/hostname", "crash\n"),
        (f"{SHARE}/vmconfig-installed.json", json.dumps(MANIFEST)),
        (f"{SHARE}/firstboot.json", json.dumps(PLAN)),
        (f"{SHARE}/zot.json", SERVER),
        (f"{ETC}/user-data.env", "INSTANCE_ID='i-1'\nKEY='ssh-ed25519 A a\nssh-ed25519 B b'\n"),
        ("/opt/zot/zot", "program"),
    ]:
        write(root, path, content)


def change(root):
    """The same machine later: other settings, a delivered key, a directory with wider permissions."""
    write(root, f"{ETC}/mutable.env", "REGISTRY_HOSTNAME='other.example'\nLOG_LEVEL='4'\n", 0o600)
    write(root, "/opt/key/nonce", "nonce", 0o644)
    (root / "opt/key").chmod(0o777)
    (root / "opt/zot/zot").chmod(0o700)
    (root / "opt/env/zot.env").chmod(0o600)


def change_back(root):
    """The settings change again before the next run: files of the interrupted one must not remain."""
    write(root, f"{ETC}/mutable.env", "REGISTRY_HOSTNAME='registry.example'\n", 0o600)


def snapshot(root):
    """Path -> type and mode, owner, content."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = pathlib.Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else None
            found[os.path.relpath(path, root)] = (oct(status.st_mode), status.st_uid, status.st_gid, content)
    return found


def differences(one, other):
    return [f"{path}: {one.get(path)} != {other.get(path)}" for path in sorted(one.keys() | other.keys()) if one.get(path) != other.get(path)]


class Scenario:
    def __init__(self, program, work, name, before, arguments, gone=None, then=lambda root: None):
        self.program, self.work, self.name, self.before, self.arguments = program, work / name, name, before, arguments
        # A file that the command removes: without it, it reports that there is nothing to do.
        self.gone = gone
        # Actions before the next run.
        self.then = then
        self.work.mkdir()
        root = self.copy("disturbed run")
        self.complete(root)
        self.after = self.copy("next run")
        then(self.after)
        self.complete(self.after)
        self.new = snapshot(self.after)
        # Allowed states after an interrupted run.
        self.stages = [snapshot(before), snapshot(root)]

    def complete(self, root):
        done = self.run(root)
        assert done.returncode == 0, f"{self.name}: {done.stderr}"

    def copy(self, name):
        root = self.work / name
        must("cp", "-a", "--", self.before, root)
        return root

    def command(self, root):
        return [self.program, *self.arguments, "--root", root]

    def run(self, root, *under):
        return run(*under, *self.command(root))

    def trace(self, root):
        """The calls of a run: name, number among the calls of that name, the line of strace."""
        log = self.work / "trace"
        done = self.run(root, "strace", "-qq", "-o", log, "-e", f"trace={CALLS}", "-e", "signal=none")
        assert done.returncode == 0, done.stderr
        numbers = collections.Counter()
        for line in log.read_text().splitlines():
            name = line.partition("(")[0]
            numbers[name] += 1
            yield name, numbers[name], line

    def points(self):
        root = self.copy("traced")
        for name, number, line in self.trace(root):
            if name == "openat" and "O_CREAT" not in line:
                continue
            # Its output is irrelevant here.
            if re.match(r"writev?\([12],", line):
                continue
            yield name, number, "signal=KILL"
            # From here on the disk is full, or this once it is broken.
            if name in ("openat", "write", "renameat", "mkdirat"):
                yield name, number, "error=ENOSPC", "+" if name == "write" else ""
            yield name, number, "error=EIO"
        shutil.rmtree(root)

    def changes_nothing_twice(self):
        """On the finished tree no modifying calls are made, except to clean up after a killed run."""
        if self.gone:
            return
        made = [line for name, _, line in self.trace(self.after) if not re.match(r"writev?\([12],", line)]
        made = [line for line in made if "ENOENT" not in line and ("O_CREAT" in line or not line.startswith("openat("))]
        assert not made and snapshot(self.after) == self.new, "\n".join(made)

    def disturb(self, point):
        """Errors after an interrupted run, and after the next one."""
        call, number, fault, *more = point
        label = f"{self.name}: {fault} at {call} {number}"
        root = self.copy("-".join([call, str(number), fault]))
        inject = f"inject={call}:{fault}:when={number}{''.join(more)}"
        killed = fault == "signal=KILL"
        # Its filter in the kernel, which wants -f, stops the program at these calls only, and is three times as fast, but
        # sends no signals.
        under = ["strace", "-qq", "-o", "/dev/null"] + ([] if killed else ["-f", "--seccomp-bpf"])
        done = self.run(root, *under, "-e", f"trace={call}", "-e", inject)
        wrong = []
        if done.returncode not in ((-9, 137) if killed else (1,)):
            wrong.append(f"it ended with {done.returncode}: {done.stderr}")
        wrong += self.partial(snapshot(root), may_leave=killed or call == "unlinkat")
        missing = self.gone and not (root / self.gone).exists()
        self.then(root)
        again = self.run(root)
        if again.returncode != (1 if missing else 0):
            wrong.append(f"the next run ended with {again.returncode}: {again.stderr}")
        wrong += differences(snapshot(root), self.new)
        shutil.rmtree(root)
        return [f"{label}: {what}" for what in wrong]

    def partial(self, found, may_leave):
        old, new = self.stages
        wrong = []
        for path, (mode, uid, gid, content) in found.items():
            if path.endswith(TEMPORARY):
                name = path.replace("/.", "/").removesuffix(TEMPORARY)
                if not may_leave:
                    wrong.append(f"{path} was left")
                elif mode != "0o100600" and (mode, uid, gid) != new[name][:3]:
                    wrong.append(f"{path} is {mode} {uid}:{gid}")
            elif path == RECORD:
                json.loads(content)
            elif content is not None and content not in [stage[path][3] for stage in self.stages if path in stage]:
                wrong.append(f"{path} is neither the old nor the new one: {content}")
            elif content is not None and path not in old and (mode, uid, gid) != new[path][:3]:
                wrong.append(f"{path} is new and {mode} {uid}:{gid}")
        return wrong

    def at_once(self, count=8):
        root = self.copy("at-once")
        runs = [subprocess.Popen(self.command(root), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(count)]
        said = [f"{run.returncode}: {error}" for run in runs for error in [run.communicate()[1]] if run.returncode != 0]
        # The second one finds no files.
        alone = self.gone and len(said) == count - 1
        wrong = differences(snapshot(root), self.stages[1]) + ([] if alone else said)
        assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def scenarios():
    """By name. In memory, where a sync costs nothing: what it does to a disk is not measured here."""
    program = TARGET / "firstboot" / must("dpkg", "--print-architecture").strip() / "firstboot"
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        work = pathlib.Path(folder)
        base, later, update, node = work / "base", work / "later", work / "update", work / "node"
        base.mkdir()
        prepare(base)
        first = Scenario(program, work, "first boot", base, ["configure"])
        for copy in (later, update):
            must("cp", "-a", "--", first.after, copy)
        change(later)
        node.mkdir()
        firstboot.fresh(node, firstboot.layers("knc", {}))
        write(update, "/opt/new.env", "LOG_LEVEL=3\nKEY='ssh-ed25519 C c'\n")
        arguments = ["update-mutable-env", "/opt/new.env", f"{ETC}/mutable.env", "true"]
        found = [
            first,
            Scenario(program, work, "changed settings", later, ["configure"]),
            Scenario(program, work, "settings changed, then back", later, ["configure"], then=change_back),
            Scenario(program, work, "permissions", later, ["permissions"]),
            Scenario(program, work, "update-mutable-env", update, arguments, gone="opt/new.env"),
            Scenario(program, work, "first boot of knc", node, ["configure"]),
        ]
        yield {scenario.name: scenario for scenario in found}


NAMES = ["first boot", "changed settings", "settings changed, then back", "permissions", "update-mutable-env", "first boot of knc"]


@pytest.fixture(params=NAMES)
def scenario(request, scenarios):
    return scenarios[request.param]


def step(points):
    """Every which point is taken. A prime number does not fall in step with the calls that each file takes."""
    def prime(number):
        return all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    return next(filter(prime, range(-(-points // SAMPLES), points + 2)))


def disturbed(scenario, points):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [what for found in pool.map(scenario.disturb, points) for what in found]
    assert points and not wrong, "\n".join(wrong[:40])


def test_firstboot_killed(scenario):
    points = list(scenario.points())
    disturbed(scenario, points[:: step(len(points))])


@pytest.mark.slow
def test_firstboot_killed_at_every_call(scenario):
    disturbed(scenario, list(scenario.points()))


def test_firstboot_twice(scenario):
    scenario.changes_nothing_twice()


def test_firstboot_at_once(scenario):
    scenario.at_once()
