#!/usr/bin/env python3
"""Render the documentation of all crates with rustdoc, for which a warning is an error.

`cargo doc` would compile every dependency a second time, in a form that nothing else uses. This passes the results of a build to rustdoc. Arguments are
cargo's.
"""

import json
import os
import subprocess
import sys

OUT = "target/doc"


def cargo(*args: str) -> str:
    return subprocess.run(["cargo", *args], check=True, stdout=subprocess.PIPE, text=True).stdout


def built() -> tuple[dict[str, list[str]], dict[str, dict]]:
    """The libraries of every package, and what its build script said, by the package's id."""
    libraries: dict[str, list[str]] = {}
    scripts: dict[str, dict] = {}
    # With all targets, as `make check` builds them: fewer would have fewer features, and be compiled again.
    build = ("build", "--quiet", "--release", "--workspace", "--all-targets", "--message-format=json")
    lines = cargo(*build, *sys.argv[1:]).splitlines()
    for message in map(json.loads, lines):
        if message["reason"] == "build-script-executed":
            scripts[message["package_id"]] = message
        elif message["reason"] == "compiler-artifact" and "custom-build" not in message["target"]["kind"]:
            found = [name for name in message["filenames"] if name.endswith((".rlib", ".so"))]
            libraries.setdefault(message["package_id"], []).extend(found)
    return libraries, scripts


def main() -> None:
    metadata = json.loads(cargo("metadata", "--format-version=1"))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    libraries, scripts = built()
    for package in map(packages.get, metadata["workspace_members"]):
        crate = package["name"]
        library = next(target for target in package["targets"] if "lib" in target["kind"])
        command = ["rustdoc", "-D", "warnings", "--edition", library["edition"], "--crate-name", library["name"]]
        command += ["--crate-version", package["version"], "-o", OUT, "-L", "dependency=target/release/deps", library["src_path"]]
        for dependency in nodes[package["id"]]["deps"]:
            # What is for tests and build scripts alone, the library does not see.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]) and libraries.get(dependency["pkg"]):
                command += ["--extern", f"{dependency['name']}={libraries[dependency['pkg']][0]}"]
        environment = {"CARGO_PKG_NAME": crate, "CARGO_PKG_VERSION": package["version"]}
        environment["CARGO_MANIFEST_DIR"] = os.path.dirname(package["manifest_path"])
        if script := scripts.get(package["id"]):
            environment |= {"OUT_DIR": script["out_dir"], **dict(script["env"])}
            command += [part for cfg in script["cfgs"] for part in ("--cfg", cfg)]
        if subprocess.run(command, env=os.environ | environment).returncode:
            sys.exit(f"the documentation of {crate} has faults")


if __name__ == "__main__":
    main()
