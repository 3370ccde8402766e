#!/usr/bin/env python3
"""Draws the dependencies of the crates into docs/architecture.md, as Mermaid. With --check, fails if the picture there is another.

An arrow leads from a crate to one that it uses, and is left out where a longer way leads there, too."""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
PICTURE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)


def crates() -> dict[str, set[str]]:
    """The crates of the workspace by name, each with those that it uses."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--offline"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
    names = {package["name"] for package in packages}
    return {
        package["name"]: {it["name"] for it in package["dependencies"] if it["kind"] != "dev" and it["name"] in names}
        for package in packages
    }


def reachable(uses: dict[str, set[str]], start: str) -> set[str]:
    found = set(uses[start])
    for name in uses[start]:
        found |= reachable(uses, name)
    return found


def picture(uses: dict[str, set[str]]) -> str:
    lines = ["graph TD"]
    for name in sorted(uses):
        longer = set().union(*(reachable(uses, used) for used in uses[name]))
        lines += [f"    {short(name)} --> {short(used)}" for used in sorted(uses[name] - longer)]
    return "\n".join(lines) + "\n"


def short(name: str) -> str:
    return name.removeprefix("vmbake-")


def main() -> None:
    page = PAGE.read_text()
    drawn = PICTURE.sub(lambda _: picture(crates()), page, count=1)
    if "--check" in sys.argv[1:]:
        if drawn != page:
            sys.exit("docs/architecture.md: the picture of the crates is not that of Cargo.toml: make reference")
    else:
        PAGE.write_text(drawn)


if __name__ == "__main__":
    main()
