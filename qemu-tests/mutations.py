#!/usr/bin/python3
"""mutations.py IMAGE [FAULT…]: makes the faults of mutations.yaml in a node in qemu, one after the other, and judges the judges.

Each fault must have exactly those cases fail that it names, and the same scenario must have none fail before there is any fault. Prints
`ok: FAULT` or `FAIL: FAULT`. One machine, two boots; minutes below emulation.
"""

import itertools
import pathlib
import sys
import tempfile
import time

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "checks"))
import node as asks  # noqa: E402
import scenarios  # noqa: E402

SCENARIOS = {function.__name__: function for function in (scenarios.first_boot, scenarios.certificates, scenarios.second_boot, asks.trusted, asks.quiet)}
# Those that leave the machine as it was: they are asked before any fault as well.
LOOKING = ("first_boot", "trusted", "quiet")
failures = []


def told(name, ok, said=""):
    print(f"{'ok' if ok else 'FAIL'}: {name}", flush=True)
    if not ok:
        failures.append(name)
        print(str(said)[-4000:], flush=True)


class Judged:
    """A node, and which cases fail when it is asked."""

    def __init__(self, image, folder, **options):
        self.failed = {}
        self.node = asks.Node(image, folder, self._report, **options)

    def _report(self, name, ok, said=""):
        if not ok:
            self.failed[name.split(": ", 1)[1]] = str(said)

    def asked(self, scenario):
        """What fails: {case: what was said}."""
        self.failed = {}
        SCENARIOS[scenario](self.node)
        return self.failed

    def shell(self, script):
        code, said = self.node.shell(f"set -e\n{script}")
        if code != 0:
            sys.exit(f"the machine does not take a fault:\n{script}\n{said}")


def judge(judged, faults):
    """One fault, or several of one scenario at once."""
    for fault in faults:
        judged.shell(fault["break"])
    start, failed = time.monotonic(), judged.asked(faults[0]["ask"])
    expected = {name for fault in faults for name in fault["fails"]}
    for fault in faults:
        missed = set(fault["fails"]) - set(failed)
        told(fault["fault"], not missed, f"not noticed by {missed}")
    told(f"{faults[0]['ask']}: nothing else fails ({time.monotonic() - start:.0f} s)", set(failed) <= expected,
         {name: said for name, said in failed.items() if name not in expected})
    for fault in faults:
        judged.shell(fault["mend"])


def main(image, *names):
    faults = [fault for fault in yaml.safe_load((HERE / "mutations.yaml").read_text()) if not names or fault["fault"] in names]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        judged = Judged(image, folder, firmware="direct")
        with judged.node as node:
            node.boot()
            ended, said = node.booted()
            told("the machine boots", ended, said)
            for scenario in LOOKING:
                told(f"{scenario}: nothing fails without a fault", not judged.asked(scenario), judged.failed)
            for together, group in itertools.groupby(faults, lambda fault: (fault["ask"], fault.get("stay", False))):
                group = list(group)
                for some in [group] if together[1] else [[fault] for fault in group]:
                    judge(judged, some)
    print(f"{len(faults)} faults, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
