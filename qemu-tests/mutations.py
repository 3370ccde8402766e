#!/usr/bin/env python3
"""mutations.py [--only nspawn|qemu|image] FOLDER…: injects the faults of mutations.yaml, to test the checks. The directories have the images.

Each fault must make exactly the named checks fail, and the same scenario must pass without a fault. What does not
need a separate kind of machine happens below systemd-nspawn, in a minute, as the scenarios are the same (needs root); what needs
a network or a separate kernel in qemu; and what must be wrong before the boot is made in a copy of an image, for a case of cases/.
Prints `ok: FAULT` or `FAIL: FAULT`.
"""

import argparse
import itertools
import os
import pathlib
import re
import sys
import tempfile
import time

import run
import yaml
from case import load

from harness import containers, life, scenarios
from harness import node as asks
from harness.paths import ROOT
from harness.report import case, failures, skip
from harness.vm import call

HERE = pathlib.Path(__file__).resolve().parent
# Those of qemu need its network.
SCENARIOS = {"nspawn": {function.__name__: function for function in (scenarios.first_boot, scenarios.certificates, scenarios.second_boot)},
             "qemu": {function.__name__: function for function in (asks.trusted, containers.baked, asks.quiet)}}
# These do not change the machine: they also run before any fault.
LOOKING = ("first_boot", "trusted", "baked", "quiet")
KIND = "knc"


class Judge:
    """A healthy node, and its failing cases. Subclasses create `self.node`."""

    def report(self, name, ok, said=""):
        if not ok:
            self.failed[name.split(": ", 1)[1]] = str(said)

    def asked(self, scenario):
        """Failures: {case: output}."""
        self.failed = {}
        SCENARIOS[self.where][scenario](self.node)
        return self.failed

    def script(self, text):
        code, said = self.node.run("sh", "-ec", text)
        if code != 0:
            raise RuntimeError(f"the machine does not take a fault:\n{text}\n{said}")

    def judge(self, faults):
        """One fault, or several of one scenario at once."""
        for fault in faults:
            self.script(fault["break"])
        start, failed = time.monotonic(), self.asked(faults[0]["ask"])
        for fault in faults:
            case(fault["fault"], set(fault["fails"]) <= set(failed), f"noticed by {sorted(failed)} alone")
        others = {name: said for name, said in failed.items() if not any(name in fault["fails"] for fault in faults)}
        if others:
            case(f"{', '.join(fault['fault'] for fault in faults)}: nothing else fails", False, others)
        for fault in faults:
            self.script(fault.get("mend", ":"))
        return time.monotonic() - start

    def all(self, faults):
        for scenario in SCENARIOS[self.where]:
            if scenario in LOOKING:
                case(f"{scenario}: nothing fails without a fault", not self.asked(scenario), self.failed)
        for (_, stay), group in itertools.groupby(faults, lambda fault: (fault["ask"], fault.get("stay", False))):
            group = list(group)
            for some in [group] if stay else [[fault] for fault in group]:
                self.judge(some)


class Nspawn(Judge):
    where = "nspawn"

    def __init__(self, image, folder):
        if image.suffix != ".raw":
            raw = pathlib.Path(folder) / "faults.raw"
            call("qemu-img", "convert", "-O", "raw", image, raw)
            image = raw
        self.node = life.Node(image, folder, "faults")
        self.node.case = self.report

    def begin(self):
        self.node.prepare()
        life.begin(self.node)


class Qemu(Judge):
    where = "qemu"

    def __init__(self, image, folder):
        self.node = asks.Node(image, pathlib.Path(folder) / "qemu", self.report, firmware="direct")

    def begin(self):
        self.node.boot()
        ended, said = self.node.booted()
        case("the machine boots", ended, said)


def spoiled(image, faults, path):
    """A copy of an image with faults in its root file system."""
    call("qemu-img", "convert", "-O", "raw", image, path)
    first = re.search(r"First sector: (\d+)", call("sgdisk", "-i", "1", path)).group(1)
    for fault in faults:
        for name, content in fault["image"].items():
            new = path.with_suffix(".file")
            if content is not None:
                new.write_text(content)
            # debugfs fails silently: it prints the error after its name.
            command = f"rm {name}" if content is None else f"write {new} {name}"
            said = call("debugfs", "-w", "-R", command, f"{path}?offset={int(first) * 512}")
            if re.search(r"rm:|write:|File not found", said):
                raise RuntimeError(f"{name}: {said}")


def imaged(name, faults, options, folder):
    """A case with an image that has faults: all of them at once."""
    loaded = load(name)
    path = folder / f"{loaded.values['image']}.raw"
    spoiled(run.image(loaded, options.images), faults, path)
    one = run.Run(loaded, path, options)
    one.go()
    failed = {problem.removesuffix(" failed") for problem in one.problems}
    for fault in faults:
        case(fault["fault"], set(fault["fails"]) <= failed, f"noticed by {sorted(failed)} alone")
    others = failed - {check for fault in faults for check in fault["fails"]}
    case(f"{name}: nothing else fails", not others, others)


def main():
    parser = argparse.ArgumentParser(description="makes faults in a node, and judges the judges")
    parser.add_argument("images", type=pathlib.Path, nargs="+")
    parser.add_argument("--only", choices=[*SCENARIOS, "image"])
    # Options of run.py.
    parser.set_defaults(slow=4, keep=False, work="/var/tmp", logs=ROOT / "dist/logs")
    options = parser.parse_args()
    faults = yaml.safe_load((HERE / "mutations.yaml").read_text())
    if options.only in (None, "nspawn") and os.getuid() != 0:
        return skip("needs root")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for kind in (Nspawn, Qemu):
            if options.only in (None, kind.where):
                judge = kind(run.image(load(KIND), options.images), folder)
                with judge.node:
                    judge.begin()
                    judge.all([fault for fault in faults if fault.get("ask") in SCENARIOS[kind.where]])
        if options.only in (None, "image"):
            for name in sorted({fault["case"] for fault in faults if "case" in fault}):
                imaged(name, [fault for fault in faults if fault.get("case") == name], options, pathlib.Path(folder))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
