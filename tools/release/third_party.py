#!/usr/bin/python3
"""third_party.py: prints the licences of the crates that are linked into vmbake, on any architecture of `build.sh`, and of the C libraries in them: each crate
with its licence, then each different text once with the crates that have it. The texts are those of the crates themselves, as cargo has unpacked them.
"""

import collections
import pathlib
import re
import sys

import crates

TEXT = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)([-._].*)?", re.IGNORECASE)
RULE = "-" * 80


def texts(package):
    """The licence texts in a package: its own, and those of the C libraries whose sources it has."""
    for path in sorted(pathlib.Path(package["manifest_path"]).parent.rglob("*")):
        if TEXT.fullmatch(path.name) and path.is_file():
            yield path.read_text(errors="replace").strip().replace("\r\n", "\n")


def main():
    packages = {(package["name"], package["version"]): package for package, _ in crates.linked().values() if package["source"]}
    if not packages:
        sys.exit("cargo names no package that is linked into vmbake")
    print("Linked into vmbake, with the licences that each package names. The standard library of Rust (MIT OR Apache-2.0)")
    print("and musl's C library (MIT) are linked too, as Rust's toolchain brings them.\n")
    holders = collections.defaultdict(list)
    for (name, version), package in sorted(packages.items()):
        print(f"{name} {version}: {package['license'] or 'see its text'}")
        for text in dict.fromkeys(texts(package)):
            holders[text].append(name)
    for text, names in sorted(holders.items(), key=lambda item: item[1]):
        print(f"\n{RULE}\n{', '.join(names)}\n{RULE}\n\n{text}")


main()
