#!/usr/bin/env python3
"""firstboot.py [FIRSTBOOT [RUNS]]: the time that `configure` takes for a node of the control plane, without systemctl and
network, compared with an equivalent shell script. Both work below a directory in memory, and their results are compared first.

Only ratios are meaningful; milliseconds depend on the machine. Fails above the limit. Needs root, for owners of files.
"""

import ctypes
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from harness import cluster
from harness.paths import ROOT

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_MS = 5.0
CLONE_NEWNS = 0x20000
PAUSE = "registry.k8s.io/pause:3.10.1"
# Files that the script does not write: the record of the program, and what it wrote at names that depend on variables.
IGNORED = ("var/lib/vmbake", "directories")


def layers(kind, found):
    """The layers of a kind, each after those that it requires."""
    layer = json.loads((ROOT / f"layers/{kind}/layer.json").read_text())
    for name in layer.get("requires", []):
        layers(name, found)
    found.setdefault(kind, layer)
    return found


def join(parts):
    """The plan of a kind from the parts of its layers."""
    plan = {}
    for layer in parts:
        files = {entry["path"]: {"mode": entry["mode"]} for entry in layer.get("artifacts", {}).values() if entry["type"] == "file"}
        users = {name: {"id": user["id"], "home": f"/home/{name}", "shell": "/usr/sbin/nologin", "groups": user.get("groups", [])}
                 for name, user in layer.get("users", {}).items()}
        own = {"directories": layer.get("directories", {}), "modes": files, "accounts": users}
        for part in (own, layer.get("first_boot", {})):
            for key, value in part.items():
                if isinstance(value, list):
                    plan.setdefault(key, []).extend(value)
                else:
                    plan.setdefault(key, {}).update(value)
    # The network is not measured.
    plan["connect"] = []
    # In a plan nothing is short for anything.
    contents = [rule["content"]["environment"] for rule in plan["files"] if "environment" in rule["content"]]
    for assignments in (plan["detect"], plan["values"], *contents, *(entry.get("environment", []) for entry in plan["exec"].values())):
        assignments[:] = [{"name": entry, "value": f"{{{{ {entry} }}}}"} if isinstance(entry, str) else entry for entry in assignments]
    for entry in plan["exec"].values():
        entry["arguments"] = [{"value": value} if isinstance(value, str) else value for value in entry["arguments"]]
    return plan


def write(root, path, text=""):
    path = root / path.removeprefix("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def members(found, group):
    """Members of secondary groups."""
    return [name for layer in found.values() for name, user in layer.get("users", {}).items() if group in user.get("groups", [])]


def fresh(root, found):
    """The root of a machine before its first boot."""
    plan = join(found.values())
    accounts = {"root": 0, "systemd-journal": 999} | {name: user["id"] for layer in found.values() for name, user in layer.get("users", {}).items()}
    write(root, "etc/passwd", "".join(f"{name}:x:{number}:{number}::/home/{name}:/usr/sbin/nologin\n" for name, number in accounts.items()))
    write(root, "etc/group", "".join(f"{name}:x:{number}:{','.join(members(found, name))}\n" for name, number in accounts.items()))
    write(root, "etc/hosts", "127.0.0.1 localhost\n")
    write(root, "etc/hostname", "one\n")
    write(root, "etc/resolv.conf", "search blue.example\n")
    write(root, "proc/sys/kernel/hostname", "one\n")
    write(root, "proc/sys/kernel/osrelease", "6.12\n")
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    write(root, "proc/net/route", head + "ens3\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
          "ens3\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n")
    write(root, "proc/net/fib_trie", "Local:\n  |-- 10.0.2.15\n     /32 host LOCAL\n  |-- 127.0.0.1\n     /32 host LOCAL\n")
    write(root, "proc/net/if_inet6", "fd000009000000000000000000000007 02 40 00 80 ens3\n")
    write(root, "var/lib/cloud/data/instance-id", "iid-one\n")
    write(root, "opt/podplane/share/vmconfig-installed.json",
          json.dumps({"vmconfig": {"kind": "knc", "version": "dev", "os": {"name": "debian-13", "arch": "amd64"}}}))
    write(root, "opt/podplane/share/firstboot.json", json.dumps(plan))
    for name in found:
        for path in ROOT.glob(f"layers/{name}/files/opt/podplane/share/templates/*"):
            write(root, f"opt/podplane/share/templates/{path.name}", path.read_text().replace("@{image:registry.k8s.io/pause}", PAUSE))
    variables = plan["variables"]
    mutable = {name: entry.get("default", "") for name, entry in sorted(variables.items()) if entry.get("mutable") and not entry.get("unlisted")}
    write(root, plan["inputs"]["defaults"], cluster.environment(mutable))
    write(root, plan["inputs"]["user_data"], cluster.environment(cluster.user_data(cluster.Authority())))
    write(root, "opt/nstance-agent/identity/nonce.jwt", "nonce")
    for path, entry in plan["modes"].items():
        write(root, path)
        (root / path[1:]).chmod(int(entry["mode"], 8))
    # Sorted: parents first.
    owners = [f"{entry['mode']} {entry.get('owner', 'root')} {entry.get('group', 'root')} {path}\n"
              for path, entry in sorted(plan["directories"].items())]
    write(root, "directories", "".join(owners))
    for line in owners:
        (root / line.split()[3][1:]).mkdir(parents=True, exist_ok=True)


def tree(root):
    """Every path with its mode, owner and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not name.startswith(IGNORED):
            status = path.lstat()
            found[name] = (oct(status.st_mode), status.st_uid, status.st_gid, path.read_bytes() if path.is_file() else b"")
    return found


def measured(command, runs, prepare):
    """Milliseconds of the runs, each after `prepare`."""
    times = []
    for _ in range(runs):
        prepare()
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    return times


def borrow(files):
    """Puts files of the machine in the places of our own, for this process and those that it starts: chown takes names."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for path in files:
        subprocess.run(["mount", "--bind", path, f"/etc/{path.name}"], check=True)


def main(program=ROOT / "target/firstboot/amd64/firstboot", runs="30"):
    if os.getuid() != 0:
        print("skipped: needs root")
        return 1 if os.environ.get("CI") else 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        folder = pathlib.Path(folder)
        pristine = folder / "pristine"
        fresh(pristine, layers("knc", {}))
        borrow([pristine / "etc/passwd", pristine / "etc/group"])
        commands = {"firstboot configure": [program, "configure", "--root"], "the same in bash": [HERE / "firstboot.sh"]}
        best, left = {}, {}
        for name, command in commands.items():
            root = folder / "root"

            def anew():
                shutil.rmtree(root, ignore_errors=True)
                subprocess.run(["cp", "-a", pristine, root], check=True)

            first = measured([*command, root], int(runs), anew)
            left[name] = tree(root)
            again = measured([*command, root], int(runs), lambda: None)
            # Other processes only increase a time: the minimum is most accurate.
            best[name] = (min(first), min(again))
            print(f"{name:<24} first run {min(first):7.2f} ms (median {statistics.median(first):.2f}), "
                  f"again {min(again):7.2f} ms (median {statistics.median(again):.2f})", flush=True)
        ours, theirs = left.values()
        for path in sorted(dict(ours.items() ^ theirs.items())):
            print(f"FAIL: {path}: {ours.get(path)} is not {theirs.get(path)}")
        (first, again), (first_bash, again_bash) = best.values()
        print(f"{'ratio':<24} first run {first_bash / first:7.1f}, again {again_bash / again:7.1f}")
        slow = max(first, again) > LIMIT_MS
        if slow:
            print(f"FAIL: more than {LIMIT_MS} ms")
        return 1 if slow or ours != theirs else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
