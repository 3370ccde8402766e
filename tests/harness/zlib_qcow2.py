"""A qcow2 reader that supports only zlib compression, with QEMU's window of 4 KiB, like readers that predate zstd.

It refuses every incompatible feature, and shares nothing with vmbake.
"""

import os
import struct
import zlib

MAGIC = 0x514649FB
OFFSET = (1 << 56) - (1 << 9)
COMPRESSED = 1 << 62
WINDOW_BITS = 12


def to_raw(qcow2, raw):
    """Writes the disk of an image to a file with holes; returns how many clusters were compressed, and how many were not."""
    with open(qcow2, "rb") as image, open(raw, "wb") as disk:
        magic, version, backing, _, bits, size, crypt, l1_size, l1_at = struct.unpack(">IIQIIQIIQ", image.read(48))
        image.seek(72)
        [incompatible] = struct.unpack(">Q", image.read(8)) if version >= 3 else [0]
        if (magic, backing, crypt, incompatible) != (MAGIC, 0, 0, 0):
            raise ValueError(f"not an image for this reader: {(magic, version, backing, crypt, incompatible)}")
        cluster, compressed, plain = 1 << bits, 0, 0
        disk.truncate(size)
        for first, l2_at in enumerate(_table(image, l1_at, l1_size)):
            if not l2_at & OFFSET:
                continue
            for index, entry in enumerate(_table(image, l2_at & OFFSET, cluster // 8)):
                data = _cluster(image, entry, bits)
                if data is None:
                    continue
                compressed, plain = compressed + bool(entry & COMPRESSED), plain + (not entry & COMPRESSED)
                disk.seek((first * (cluster // 8) + index) * cluster)
                disk.write(data[:size - disk.tell()])
        os.fsync(disk.fileno())
    return compressed, plain


def _table(image, at, entries):
    image.seek(at)
    return struct.unpack(f">{entries}Q", image.read(8 * entries))


def _cluster(image, entry, bits):
    if entry & COMPRESSED:
        shift = 62 - (bits - 8)
        at, sectors = entry & ((1 << shift) - 1), ((entry & (COMPRESSED - 1)) >> shift) + 1
        image.seek(at)
        inflate = zlib.decompressobj(-WINDOW_BITS)
        data = inflate.decompress(image.read(sectors * 512 - at % 512), 1 << bits)
        if len(data) != 1 << bits:
            raise ValueError(f"the cluster at {at:#x} has {len(data)} bytes")
        return data
    if not entry & OFFSET or entry & 1:
        return None
    image.seek(entry & OFFSET)
    return image.read(1 << bits)
