#!/usr/bin/python3
"""sbom.py: prints the bill of materials of vmbake as CycloneDX 1.6: every crate that is linked into it on any architecture of `build.sh`, with its licence, the
digest by which Cargo.lock pins it, and what it uses. Without times and numbers: the same source gives the same text.
"""

import json
import pathlib
import tomllib

import crates

LOCK = pathlib.Path(__file__).resolve().parents[2] / "Cargo.lock"


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, checksums):
    """A component of CycloneDX: cargo's older form of `OR` in licences is a slash."""
    found = {"bom-ref": reference(package), "name": package["name"], "purl": reference(package), "type": "library", "version": package["version"]}
    if package["license"]:
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


def main():
    lock = tomllib.loads(LOCK.read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    found = crates.linked()
    ids = sorted(found, key=lambda id: reference(found[id][0]))
    program = next(package for package, _ in found.values() if package["name"] == "vmbake")
    others = [found[id][0] for id in ids if found[id][0] is not program]
    print(json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(program, checksums) | {"type": "application"}},
        "components": [component(package, checksums) for package in others],
        "dependencies": [
            {"ref": reference(found[id][0]), "dependsOn": sorted(reference(found[other][0]) for other in found[id][1])} for id in ids
        ],
    }, indent=2, sort_keys=True))


main()
