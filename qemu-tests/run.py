#!/usr/bin/env python3
"""run.py [options]: boots baked images in qemu and checks them, by the cases in cases/NAME.yaml.

Prints `SECONDS CASE CHECK ok|FAIL` as each check ends, or `skipped: REASON`, and what a failed one said; then a line for each case.
The exit status is 0 if every check of every case ran and was ok, and each case kept to its budget; 1 if not; 2 if a case or an image is
not there or not understood, and then nothing was booted.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time

import steps
from case import Refused, load, names

from harness.node import machine
from harness.paths import ROOT
from harness.report import note_skipped
from harness.shell import Lost, slowness
from harness.vm import power_cut

KEPT = ("*.log", "*.pcap")
printing = threading.Lock()


class Run:
    """One case while it runs."""

    def __init__(self, case, image, options):
        self.case, self.image, self.options = case, image, options
        self.budget = case.budget * options.slow
        self.expected, self.seen, self.problems, self.cpu = list(case.checks()), set(), [], 0.0

    def go(self):
        """Runs the case; whether it is good."""
        self.start = time.monotonic()
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"vmbake-{self.case.name}.", dir=self.options.work))
        # Whatever the case waits for ends with its machines.
        alarm = threading.Timer(self.budget, self._late, [threading.get_ident()])
        alarm.daemon = True
        alarm.start()
        try:
            with machine(self.case, self.image, folder, self.check, self.say) as vm:
                try:
                    steps.run(self.case, vm, self.check)
                except Lost as lost:
                    self._problem(f"the case ended early: {lost}", vm.console()[-3000:])
                finally:
                    vm.kill()
                    self.cpu = vm.cpu
        # A case must not take the others with it.
        except Exception as error:  # noqa: BLE001
            self._problem(f"the case ended early: {type(error).__name__}: {error}")
        finally:
            alarm.cancel()
            self._finish(folder)
        return not self.problems

    def check(self, name, ok, said=""):
        """One check: passed, failed, or None if it cannot run here."""
        if name in self.seen:
            ok, said = False, "there was a check of this name before"
        self.seen.add(name)
        self.say(f"{name} skipped: {said}" if ok is None else f"{name} {'ok' if ok else 'FAIL'}")
        if ok is None:
            note_skipped(f"{self.case.name} {name}: {said}")
        if ok is not None and not ok:
            self._problem(f"{name} failed", str(said))

    def say(self, text, seconds=None):
        with printing:
            print(f"{time.monotonic() - self.start if seconds is None else seconds:6.1f} {self.case.name} {text}", flush=True)

    def _problem(self, problem, said=""):
        self.problems.append(problem)
        with printing:
            print("".join(f"       | {line}\n" for line in [problem, *said[-4000:].splitlines()]), end="", flush=True)

    def _late(self, thread):
        self._problem(f"it takes more than its {self.budget:.0f} s")
        power_cut(thread)

    def _finish(self, folder):
        for name in self.expected:
            if name not in self.seen:
                self.say(f"{name} FAIL")
                self._problem(f"{name} did not run")
        if not self.seen:
            self._problem("no check ran")
        logs = self.options.logs / self.case.name
        shutil.rmtree(logs, ignore_errors=True)
        if self.problems:
            logs.mkdir(parents=True)
            for pattern in KEPT:
                for path in folder.rglob(pattern):
                    shutil.copy(path, logs / "-".join(path.relative_to(folder).parts))
        if self.options.keep:
            self.say(f"is kept in {folder}")
        else:
            shutil.rmtree(folder)
        took = time.monotonic() - self.start
        good = f"ok, {len(self.seen)} checks" if not self.problems else f"FAIL, {len(self.problems)} problems, logs in {logs}"
        self.say(f"{good}; {took:.0f} of {self.budget:.0f} s, {self.cpu:.0f} s of processors")


def arguments():
    parser = argparse.ArgumentParser(description="boots baked images in qemu and judges them")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this case; may be given more than once")
    parser.add_argument("--quick", action="store_true", help="only the cases that say `quick: true`")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("--keep", action="store_true", help="keep disks and logs of all cases")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--slow", type=float, default=1, help="multiply all times that are allowed, on a slow or busy host")
    parser.add_argument("--images", action="append", type=pathlib.Path, metavar="DIR", help="where baked images are (default: dist, target/kinds)")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / "dist/logs", help="what failed cases leave (default: dist/logs)")
    parser.add_argument("--work", type=pathlib.Path, default="/var/tmp", help="where disks are while a case runs (default: /var/tmp)")
    options = parser.parse_args()
    options.images = options.images or [ROOT / "dist", ROOT / "target/kinds"]
    return options


def image(case, folders):
    """The image of a case."""
    name = f"{case.values['image']}.debian-13.{case.values['arch']}"
    paths = [folder / f"{name}.{form}" for folder in folders for form in ("qcow2", "raw")]
    for path in paths:
        if path.exists():
            return path
    raise Refused(f"{case.name}: no image {name} in {', '.join(map(str, folders))}\nhint: `make test-boot-all` bakes what the cases need")


def main():
    options = arguments()
    try:
        unknown = set(options.case or []) - set(names())
        if unknown:
            raise Refused(f"no case {', '.join(sorted(unknown))}: there are {', '.join(names())}")
        cases = [load(name) for name in options.case or names()]
        cases = [case for case in cases if case.values["quick"] or not options.quick]
        if options.list:
            for case in cases:
                print(f"{case.name}\t{case.values['image']} {case.values['arch']} {case.values['firmware']}, {case.budget} s: {case.values['about']}")
            return 0
        runs = [Run(case, image(case, options.images), options) for case in cases]
    except Refused as refused:
        print(f"run.py: {refused}", file=sys.stderr)
        return 2
    slowness[0] = options.slow
    # The longest first: none of them is then left for the end.
    runs.sort(key=lambda run: -run.budget)
    start = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        good = list(pool.map(Run.go, runs))
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        power_cut(None)
        pool.shutdown()
        return 130
    print(f"{'ok' if all(good) and good else 'FAIL'}: {sum(good)} of {len(good)} cases in {time.monotonic() - start:.0f} s, "
          f"{sum(run.cpu for run in runs):.0f} s of processors")
    return 0 if all(good) and good else 1


if __name__ == "__main__":
    # Either way nothing may be left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
