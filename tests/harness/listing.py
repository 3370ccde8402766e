"""listing.py ROOT: prints every path of a folder as the example `trace` does: mode, owner, and the digest of its content.

It is a separate program, because it runs in the mount namespace of a test.
"""

import hashlib
import os
import stat
import sys

# Of larger files, which no script changes, only the length is compared.
LONGEST = 100_000


def escape(content):
    """As Rust's escape_ascii."""
    named = {9: "\\t", 10: "\\n", 13: "\\r", 34: "\\\"", 39: "\\'", 92: "\\\\"}
    return "".join(named.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in content)


def listing(root):
    """Every path of a folder but those that the check made, as the example prints them."""
    for folder, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(folder, name)
            shown = path[len(root):]
            if shown.startswith("/dev/") or shown in ("/.calls", "/.script"):
                continue
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                text, mode = "link " + escape(os.fsencode(os.readlink(path))), 0o777
            else:
                mode = stat.S_IMODE(found.st_mode)
                text = "directory" if stat.S_ISDIR(found.st_mode) else None
                text = text or (f"file of {found.st_size} bytes" if found.st_size > LONGEST else
                                "file " + hashlib.sha256(open(path, "rb").read()).hexdigest())
            print(f"{escape(os.fsencode(shown))}\t{mode:o} {found.st_uid}:{found.st_gid}\t{text}")


if __name__ == "__main__":
    listing(sys.argv[1])
