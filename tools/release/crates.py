"""The crates that are linked into vmbake, as cargo resolves them."""

import json
import subprocess

TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]


def graph(target):
    """The program's package, all packages by their ids, and the ids that each depends on: without what only a build needs."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in found["packages"]}

    def is_linked(id):
        return not any("proc-macro" in part["kind"] for part in packages[id]["targets"])

    depends = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]) and is_linked(dep["pkg"])]
        for node in found["resolve"]["nodes"]
    }
    root = next(id for id, package in packages.items() if package["name"] == "vmbake")
    return root, packages, depends


def linked():
    """Each package that the program consists of on any architecture of `build.sh`, the program first, with the ids of those that it uses."""
    found = {}
    for target in TARGETS:
        root, packages, depends = graph(target)
        todo, seen = [root], set()
        while todo:
            id = todo.pop()
            if id not in seen:
                seen.add(id)
                found.setdefault(id, (packages[id], set()))[1].update(depends[id])
                todo += depends[id]
    return found
