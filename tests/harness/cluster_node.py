"""The interface of scenarios.py to a node of a cluster, below systemd-nspawn (life.py) or in qemu (node.py)."""

import re

from harness.cluster import PLANE, PORTS, RECEIVERS, UNTOUCHED

FIRST = "first-boot-env.service"
WATCH = "nstance-recv-watch.service"
AGENT = "/opt/nstance-agent"
# Files written by firstboot and its callers.
WRITTEN = ("/opt", "/etc", "/home", "/var/lib/vmbake")


class Node:
    """Interface of a scenario to any kind of machine, in addition to Asks. Subclasses have `run`, `put`, `get`, `console`, `until`, `reboot` and

    - `kind`, `authority`, and `servers`: the addresses of the servers of its cluster, as the user data have them;
    - `moved`: those that the servers have once they were started again, which `move()` does, and below systemd-nspawn `move(back=True)` undoes;
    - `addresses`: its own, IPv4 and IPv6;
    - `host`: the address of KUBE_API_INTERNAL_LB_HOSTNAME;
    - `sysctl`: a file of /proc/sys, and what only `sysctl --system` of firstboot leaves there, or None;
    - `asked()`: the ports of the servers of the cluster that were connected to, in order; `ports` are those where they are now;
    - `case(name, ok, said)`, which reports.
    """

    provider, ports = "local", PORTS

    @property
    def services(self):
        """Units that are restarted after a delivery."""
        return RECEIVERS + (PLANE if self.kind == "knc" else [])

    def digests(self, *paths):
        """Digests of files: {path: sha256}."""
        return {path: digest for digest, path in re.findall(r"^([0-9a-f]{64})  (/.*)$", self.run("sha256sum", *paths)[1], re.MULTILINE)}

    def owners(self, name, expected):
        found = self.owned(*expected)
        self.case(name, found == expected, {path: owner for path, owner in found.items() if owner != expected[path]})

    def invocations(self):
        return {unit: found["InvocationID"] for unit, found in self.show(*self.services, *UNTOUCHED).items()}

    def changed(self, before):
        return {unit for unit, invocation in self.invocations().items() if invocation != before[unit]}

    def deliver(self, files, keys=None):
        """Acts like the agent, and waits for the effects."""
        before = self.show(WATCH)[WATCH]["InvocationID"]
        for folder, mode, content in (("keys", 0o640, keys or {}), ("recv", 0o600, files), ("recv", 0o600, {"write-files.last": b""})):
            for name, text in content.items():
                self.put(f"{AGENT}/{folder}/{name}", text, mode, "nstance-agent:nstance-agent")

        def done():
            found = self.show(WATCH)[WATCH]
            return found["InvocationID"] != before and found["ActiveState"] in ("inactive", "failed")
        return self.until(done) and self.settled()

    def snapshot(self):
        """State that must not change without news: inode, and both times; the last changes with modes and owners as well."""
        said = self.run("find", *WRITTEN, "!", "-type", "d", "-printf", r"%p\t%i %T@ %C@\n")[1]
        return dict(line.split("\t") for line in said.splitlines())
