"""Network traffic of a machine, from a capture by qemu's filter-dump, as tshark reads it.

Flows are those that the machine initiated, except housekeeping (DHCP, ARP, ICMPv6 and IGMP of neighbours and groups), and DNS and its kin for
the local link (LLMNR, mDNS), of which the names are kept. Without an answer, only the name of a connection is visible: `Traffic.strangers` checks both.
"""

import ipaddress
import re
from typing import NamedTuple

from harness.run import run

FIELDS = ("eth.src", "eth.dst", "eth.type", "ip.dst", "ip.proto", "ip.frag_offset", "ipv6.dst", "ipv6.nxt", "ipv6.fraghdr.offset", "icmp.type", "icmpv6.type",
          "tcp.dstport", "tcp.flags", "udp.srcport", "udp.dstport", "dns.qry.name")
ARP, IGMP, DNS, NTP = "0x0806", "2", 53, 123
# The same messages, to groups of the link.
LINK_NAMES = {5353, 5355}
DHCP = {67, 68, 546, 547}
# Listeners and routers, neighbours, redirects, and the second version of reports of listeners.
NEIGHBOURS = {130, 131, 132, 133, 134, 135, 136, 137, 143}
SYN, ACK = 0x02, 0x10
# slirp gives its gateway, its name server and its forwarded addresses hardware addresses that begin so.
SLIRP = "52:55:"


class Flow(NamedTuple):
    """One side's view: where to, by which protocol. Ports of ICMP are its types."""
    protocol: str
    address: str
    port: int

    def __str__(self):
        return f"{self.protocol} {self.address} {self.port}"


class Traffic:
    """Contents of a capture: flows with packet counts, and queried names."""

    def __init__(self, path):
        self.flows, self.names, self.frames = {}, set(), 0
        for frame in frames(path):
            self.frames += 1
            # The rest of a packet that came in parts says nothing of ports; its first part did.
            if not frame["eth.src"].startswith(SLIRP) and frame["eth.type"] != ARP and not any(map(number, (frame["ip.frag_offset"], frame["ipv6.fraghdr.offset"]))):
                self._frame(frame)

    def strangers(self, friends, names=()):
        """Flows that are neither housekeeping nor DNS nor NTP nor to an allowed address ("10.0.2.100:8992"); and the names that no
        expression of `names` matches as a whole."""
        known = {(flow, friend.rpartition(":")[0].strip("[]"), int(friend.rpartition(":")[2])) for friend in friends for flow in ("tcp", "udp")}
        found = [str(flow) for flow in sorted(self.flows) if tuple(flow) not in known and not (flow.protocol == "udp" and flow.port == NTP)]
        return found + [f"name {name}" for name in sorted(self.names) if not any(re.fullmatch(pattern, name) for pattern in names)]

    def _frame(self, frame):
        address = frame["ip.dst"] or frame["ipv6.dst"]
        # Messages of ICMP quote packets, so that other protocols appear in them as well.
        for protocol in ("icmp", "icmpv6"):
            if kind := frame[f"{protocol}.type"]:
                if protocol == "icmp" or int(kind) not in NEIGHBOURS:
                    self._count(protocol, address, int(kind))
                return
        if frame["tcp.flags"]:
            # Connections by the machine, without answers of its services.
            if number(frame["tcp.flags"]) & (SYN | ACK) == SYN:
                self._count("tcp", address, int(frame["tcp.dstport"]))
        elif frame["udp.dstport"]:
            source, port = int(frame["udp.srcport"]), int(frame["udp.dstport"])
            if port == DNS or (port in LINK_NAMES and ipaddress.ip_address(address).is_multicast):
                self.names.add(frame["dns.qry.name"].lower())
            elif not (source in DHCP and port in DHCP):
                self._count("udp", address, port)
        elif not address:
            self._count(f"ethernet-{frame['eth.type'].removeprefix('0x')}", frame["eth.dst"], 0)
        elif frame["ip.proto"] != IGMP:
            self._count(f"ip-{frame['ip.proto'] or frame['ipv6.nxt']}", address, 0)

    def _count(self, *flow):
        self.flows[Flow(*flow)] = self.flows.get(Flow(*flow), 0) + 1


def number(text):
    return int(text or "0", 0)


def frames(path):
    """The outermost value of each field, for each frame."""
    options = ("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-E", "occurrence=f")
    done = run("tshark", "-n", "-r", path, "-T", "fields", *options, *(word for field in FIELDS for word in ("-e", field)))
    # A machine that was killed leaves the last frame in pieces: what counts was written before.
    assert done.returncode == 0 or "cut short in the middle of a packet" in done.stderr, done.stderr
    return [dict(zip(FIELDS, line.split("\t"))) for line in done.stdout.splitlines()]
