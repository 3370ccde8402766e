#!/usr/bin/python3
"""third_party.py: prints the licences of the crates that are linked into vmbake, on any architecture of `build.sh`, and of the C libraries in them: each crate
with its licence, then each different text once with the crates that have it. The texts are those of the crates themselves, as cargo has unpacked them.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]
TEXT = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)([-._].*)?", re.IGNORECASE)
RULE = "-" * 80


def linked(target):
    """The packages that the program consists of on a target, without those that only its build needs."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    graph = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in graph["packages"]}
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] == "vmbake"]
    found = set()
    while todo:
        id = todo.pop()
        if id in found or any("proc-macro" in part["kind"] for part in packages[id]["targets"]):
            continue
        found.add(id)
        todo += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return [packages[id] for id in found]


def texts(package):
    """The licence texts in a package: its own, and those of the C libraries whose sources it has."""
    for path in sorted(pathlib.Path(package["manifest_path"]).parent.rglob("*")):
        if TEXT.fullmatch(path.name) and path.is_file():
            yield path.read_text(errors="replace").strip().replace("\r\n", "\n")


def main():
    packages = {}
    for target in TARGETS:
        for package in linked(target):
            if package["source"]:
                packages[package["name"], package["version"]] = package
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
