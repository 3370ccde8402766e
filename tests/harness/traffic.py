#!/usr/bin/env python3
"""traffic.py [FILE.pcap [ADDRESS:PORT…]]: what a machine asked of its network, from a capture by qemu's filter-dump.

Prints every flow that the machine began, except housekeeping (DHCP, ARP, ICMPv6 and IGMP of neighbours and groups), DNS and its kin for
the local link (LLMNR, mDNS), NTP and connections to the addresses that are named; then every name that it asked for. Exit status 1 if
there is such a flow. Where nobody answers, a name is all that is seen of a connection: `Traffic.strangers` judges both.

Without arguments a capture that is made here is judged, and every flow of it must be told rightly.
"""

import ipaddress
import re
import struct
import sys
import tempfile
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
    """What a capture says: flows with their number of packets, and names asked for."""

    def __init__(self, path):
        self.flows, self.names, self.frames = {}, set(), 0
        with open(path, "rb") as file:
            for frame in frames(file):
                self.frames += 1
                self._frame(frame)

    def strangers(self, friends, names=()):
        """What is neither housekeeping nor DNS nor NTP nor to one of the friends ("10.0.2.100:8992"); and the names that no
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
            # What the machine begins; answers of its own services are none of it.
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
    """The name that a DNS message asks for."""
    labels, at = [], 12
    while at < len(message) and message[at]:
        length = message[at]
        labels.append(message[at + 1:at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    return ".".join(labels)


def crafted():
    """A capture, what is strange in it, and the names in it that are. The first field says who sends."""
    own, other = bytes.fromhex("525400123456"), bytes.fromhex("52550a000202")

    def udp(source, port, content=b""):
        return UDP, struct.pack(">HHHH", source, port, 8 + len(content), 0) + content

    def tcp(source, port, flags):
        return TCP, struct.pack(">HHIIBBHHH", source, port, 1, 0, 0x50, flags, 1024, 0, 0)

    def asks(name):
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, 1, 1)

    def four(sender, address, packet, fragment=0):
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(packet[1]), 0, fragment, 64, packet[0], 0)
        return sender + sender + struct.pack(">H", IPV4) + head + bytes([10, 0, 2, 15]) + ipaddress.ip_address(address).packed + packet[1]

    def six(address, packet, before=b"", first=None):
        content = before + packet[1]
        head = struct.pack(">IHBB", 6 << 28, len(content), packet[0] if first is None else first, 64)
        return own + own + struct.pack(">H", IPV6) + head + bytes(16) + ipaddress.ip_address(address).packed + content

    told = [
        (own + own + struct.pack(">H", ARP) + bytes(28), None),
        (four(own, "255.255.255.255", udp(68, 67)), None),
        (four(own, "224.0.0.22", (IGMP, bytes(8))), None),
        (six("ff02::2", (ICMPV6, bytes([133]) + bytes(7))), None),
        # With a header of hops in between, as reports of listeners have.
        (six("ff02::16", (ICMPV6, bytes([143]) + bytes(7)), bytes([ICMPV6, 0]) + bytes(6), 0), None),
        (six("ff02::1:2", udp(546, 547)), None),
        (four(own, "10.0.2.3", udp(40000, 53, asks("2.debian.pool.ntp.org"))), None),
        (four(own, "10.0.2.3", udp(40000, 53, asks("www.Example.org"))), "name www.example.org"),
        (four(own, "224.0.0.252", udp(40000, 5355, asks("printer"))), "name printer"),
        (four(own, "192.0.2.8", udp(40000, 5355, asks("printer"))), "udp 192.0.2.8 5355"),
        (four(own, "10.0.2.2", udp(40000, 123)), None),
        (four(own, "10.0.2.100", tcp(40000, 8992, SYN)), None),
        (four(own, "10.0.2.100", tcp(40001, 443, SYN)), "tcp 10.0.2.100 443"),
        (four(own, "192.0.2.7", tcp(40002, 8992, SYN)), "tcp 192.0.2.7 8992"),
        # An answer of a service of the machine, and what somebody else began.
        (four(own, "10.0.2.2", tcp(22, 50000, SYN | ACK)), None),
        (four(other, "10.0.2.15", tcp(50000, 22, SYN)), None),
        (four(own, "192.0.2.8", udp(40000, 514)), "udp 192.0.2.8 514"),
        (four(own, "192.0.2.9", (UDP, bytes(8)), 0x2001), None),
        (four(own, "192.0.2.8", udp(68, 514)), "udp 192.0.2.8 514"),
        (four(own, "192.0.2.8", (ICMP, bytes([8]) + bytes(7))), "icmp 192.0.2.8 8"),
        (six("2001:db8::1", tcp(40000, 443, SYN)), "tcp 2001:db8::1 443"),
        (six("2001:db8::1", (ICMPV6, bytes([128]) + bytes(7))), "icmpv6 2001:db8::1 128"),
        (four(own, "192.0.2.8", (47, bytes(8))), "ip-47 192.0.2.8 0"),
        (own + own + struct.pack(">H", 0x88CC) + bytes(20), "ethernet-88cc 52:54:00:12:34:56 0"),
    ]
    capture = struct.pack("<IHHiIII", MAGIC, 2, 4, 0, 0, 65536, ETHERNET)
    for frame, _ in told:
        capture += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    # The last frame is in pieces.
    return capture + struct.pack("<IIII", 0, 0, 60, 60) + b"half", {strange for _, strange in told if strange}, len(told)


def proven():
    """Whether the crafted capture is told rightly."""
    content, expected, count = crafted()
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(content)
        file.flush()
        traffic = Traffic(file.name)
    found = set(traffic.strangers(["10.0.2.100:8992"], [r"\d\.debian\.pool\.ntp\.org"]))
    for line in sorted(found ^ expected):
        print(f"FAIL: {line} is {'not ' if line in expected else ''}told")
    right = found == expected and traffic.frames == count
    print(f"{'ok' if right else 'FAIL'}: {traffic.frames} of {count} frames of a crafted capture, {len(expected)} strangers in it")
    return right


def main(*arguments):
    if not arguments:
        return 0 if proven() else 1
    path, *friends = arguments
    traffic = Traffic(path)
    strangers = traffic.strangers(friends, [".*"])
    for line in strangers:
        print(line)
    print(f"{traffic.frames} frames; names: {', '.join(sorted(traffic.names)) or 'none'}", file=sys.stderr)
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
