"""A crafted capture, of which every flow must be classified correctly."""

import ipaddress
import struct

import pytest

from harness.traffic import ACK, SYN, Traffic

pytestmark = pytest.mark.needs("tshark")
# Of a file in the byte order of its writer, with times in microseconds, and its frames.
MAGIC, ETHERNET = 0xA1B2C3D4, 1
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
ICMP, IGMP, TCP, UDP, ICMPV6 = 1, 2, 6, 17, 58


def crafted():
    """A capture, its unexpected flows, and unexpected names. The first field is the sender."""
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
        # An answer of a service of the machine, and a connection by a peer.
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


def test_strangers(tmp_path):
    content, expected, count = crafted()
    (tmp_path / "a.pcap").write_bytes(content)
    traffic = Traffic(tmp_path / "a.pcap")
    assert set(traffic.strangers(["10.0.2.100:8992"], [r"\d\.debian\.pool\.ntp\.org"])) == expected
    assert traffic.frames == count
