#!/usr/bin/env python3
"""traffic.py FILE.pcap [ADDRESS:PORT…]: network traffic of a machine, from a capture by qemu's filter-dump.

Prints every flow that the machine initiated, except housekeeping (DHCP, ARP, ICMPv6 and IGMP of neighbours and groups), DNS and its kin for
the local link (LLMNR, mDNS), NTP and connections to the addresses that are named; then every name that it asked for. Exit status 1 if
there is such a flow. Without an answer, only the name of a connection is visible: `Traffic.strangers` checks both.
"""

import ipaddress
import re
import struct
import sys
from typing import NamedTuple

# Of a file in the byte order of its writer, with times in microseconds.
MAGIC = 0xA1B2C3D4
ETHERNET = 1
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
ICMP, IGMP, TCP, UDP, ICMPV6 = 1, 2, 6, 17, 58
NAMES = {ICMP: "icmp", TCP: "tcp", UDP: "udp", ICMPV6: "icmpv6"}
DNS, NTP = 53, 123
# The same messages, to groups of the link.
LINK_NAMES = {5353, 5355}
DHCP = {67, 68, 546, 547}
# Listeners and routers, neighbours, redirects, and the second version of reports of listeners.
NEIGHBOURS = {130, 131, 132, 133, 134, 135, 136, 137, 143}
# Headers of IPv6 between the fixed one and that of the protocol: hop by hop, routing, destination options.
EXTENSIONS = {0, 43, 60}
FRAGMENT = 44
SYN, ACK = 0x02, 0x10
# slirp gives its gateway, its name server and its forwarded addresses hardware addresses that begin so.
SLIRP = bytes([0x52, 0x55])


class Damaged(Exception):
    """A capture that ends in the middle, or is none."""


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
        with open(path, "rb") as file:
            for frame in frames(file):
                self.frames += 1
                self._frame(frame)

    def strangers(self, friends, names=()):
        """Flows that are neither housekeeping nor DNS nor NTP nor to an allowed address ("10.0.2.100:8992"); and the names that no
        expression of `names` matches as a whole."""
        known = {(flow, friend.rpartition(":")[0].strip("[]"), int(friend.rpartition(":")[2])) for friend in friends for flow in ("tcp", "udp")}
        found = [str(flow) for flow in sorted(self.flows) if tuple(flow) not in known and not (flow.protocol == "udp" and flow.port == NTP)]
        return found + [f"name {name}" for name in sorted(self.names) if not any(re.fullmatch(pattern, name) for pattern in names)]

    def _frame(self, frame):
        if frame[6:8] == SLIRP:
            return
        kind, packet = struct.unpack_from(">H", frame, 12)[0], frame[14:]
        if kind == IPV4:
            length, protocol = (packet[0] & 15) * 4, packet[9]
            # The rest of a packet that came in parts says nothing of ports; its first part did.
            if not struct.unpack_from(">H", packet, 6)[0] & 0x1FFF:
                self._packet(protocol, packet[16:20], packet[length:struct.unpack_from(">H", packet, 2)[0]])
        elif kind == IPV6:
            protocol, rest = packet[6], packet[40:40 + struct.unpack_from(">H", packet, 4)[0]]
            while protocol in EXTENSIONS:
                protocol, rest = rest[0], rest[(rest[1] + 1) * 8:]
            if protocol == FRAGMENT:
                if struct.unpack_from(">H", rest, 2)[0] & 0xFFF8:
                    return
                protocol, rest = rest[0], rest[8:]
            self._packet(protocol, packet[24:40], rest)
        elif kind != ARP:
            self._count(f"ethernet-{kind:04x}", frame[:6].hex(":"), 0)

    def _packet(self, protocol, destination, content):
        address, name = str(ipaddress.ip_address(destination)), NAMES.get(protocol, f"ip-{protocol}")
        if protocol == IGMP or (protocol == ICMPV6 and content[0] in NEIGHBOURS):
            return
        if protocol in (ICMP, ICMPV6):
            self._count(name, address, content[0])
        elif protocol == TCP:
            # Connections by the machine, without answers of its services.
            if content[13] & (SYN | ACK) == SYN:
                self._count(name, address, struct.unpack_from(">H", content, 2)[0])
        elif protocol == UDP:
            source, port = struct.unpack_from(">HH", content)
            if port == DNS or (port in LINK_NAMES and ipaddress.ip_address(destination).is_multicast):
                self.names.add(question(content[8:]))
            elif not (source in DHCP and port in DHCP):
                self._count(name, address, port)
        else:
            self._count(name, address, 0)

    def _count(self, *flow):
        self.flows[Flow(*flow)] = self.flows.get(Flow(*flow), 0) + 1


def frames(file):
    """The frames of a capture."""
    head = file.read(24)
    order = next((order for order in "<>" if len(head) == 24 and struct.unpack(f"{order}I", head[:4])[0] == MAGIC), None)
    if order is None or struct.unpack(f"{order}I", head[20:])[0] != ETHERNET:
        raise Damaged(f"{file.name}: no capture of Ethernet frames")
    while header := file.read(16):
        captured = struct.unpack(f"{order}IIII", header)[2] if len(header) == 16 else 0
        frame = file.read(captured)
        # A machine that was killed leaves the last frame in pieces: what counts was written before.
        if len(header) < 16 or len(frame) < captured:
            return
        if captured >= 14:
            yield frame


def question(message):
    """The queried name of a DNS message."""
    labels, at = [], 12
    while at < len(message) and message[at]:
        length = message[at]
        labels.append(message[at + 1:at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    return ".".join(labels)


def main(*arguments):
    path, *friends = arguments
    traffic = Traffic(path)
    strangers = traffic.strangers(friends, [".*"])
    for line in strangers:
        print(line)
    print(f"{traffic.frames} frames; names: {', '.join(sorted(traffic.names)) or 'none'}", file=sys.stderr)
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
