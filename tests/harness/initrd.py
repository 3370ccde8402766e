"""The archives of an initial RAM disk."""

import subprocess

ALIGNMENT, BLOCK = 4, 512
HEADER = 110
DECOMPRESSORS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b\x08\x00": "gzip"}


def streams(path):
    """The archives without compression, one after the other."""
    content = path.read_bytes()
    found = []
    while content:
        if content.startswith(b"070701"):
            end = end_of_archive(content)
            found.append(content[:end])
            content = content[end:]
        else:
            program = DECOMPRESSORS[content[:4]]
            found.append(subprocess.run([program, "-dc"], input=content, stdout=subprocess.PIPE, check=True).stdout)
            content = b""
    return found


def end_of_archive(content):
    at = 0
    while True:
        size, length = (int(content[at + start:at + start + 8], 16) for start in (54, 94))
        name = content[at + HEADER:at + HEADER + length - 1]
        at = aligned(aligned(at + HEADER + length, ALIGNMENT) + size, ALIGNMENT)
        if name == b"TRAILER!!!":
            return aligned(at, BLOCK)


def aligned(number, to):
    return (number + to - 1) // to * to


def names(archive):
    """The names of the members."""
    listed = subprocess.run(["cpio", "--quiet", "-it"], input=archive, stdout=subprocess.PIPE, check=True).stdout
    return listed.decode().splitlines()
