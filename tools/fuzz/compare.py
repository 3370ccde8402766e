#!/usr/bin/env python3
"""compare.py SECONDS [--seed N] [--keep DIR] [WHAT...]: corrupts valid inputs and compares what vmbake reads from them with what other tools
read: qcow2 with qemu-img, ext4 (ext2, ext3) with debugfs and e2fsck, tar with GNU tar. WHAT names some of the three; each has SECONDS.

What both accept must be equal byte by byte, and what vmbake accepts must not be refused by the other; `readers/*.py` say what is
exempt, and why. Refusals by vmbake alone are not failures: they are counted by reason. Inputs are made from their numbers, which
are printed with each difference: `--seed N` repeats that one, and `--keep DIR` writes it to DIR.

Needs the examples `disk`, `tree` and `archive` (`make tools`), and for tar root, as owners and devices are unpacked. Exit status 1
if there is a difference.
"""

import argparse
import collections
import concurrent.futures
import functools
import importlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from harness import report
from harness.paths import TARGET

WHAT = ("qcow2", "ext4", "tar")
# So many inputs go to one process of ours, whose start costs more than most of them.
BATCH = 48
# Seconds that one of ours may take for a batch, or for an input; the other program has the same.
PATIENCE = 60
# Differences that are printed; more are counted.
SHOWN = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("seconds", type=float)
    parser.add_argument("what", nargs="*", choices=(*WHAT, []), metavar="WHAT")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--examples", type=pathlib.Path, default=TARGET / "release/examples")
    args = parser.parse_intermixed_args()
    failed = [what for what in args.what or WHAT if not run(what, args)]
    sys.exit(1 if failed else 0)


def run(what, args):
    module = importlib.import_module(f"readers.{what}")
    why = module.missing()
    if why:
        return not report.skip(f"{what}: {why}")
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        seeds = pathlib.Path(folder, "seeds")
        seeds.mkdir()
        module.make_seeds(seeds)
        judge = functools.partial(judge_batch, what, seeds, args.examples / module.EXAMPLE, args.keep)
        started = time.monotonic()
        if args.seed is not None:
            results = judge([args.seed])
        else:
            results = fuzz(judge, args.first, started + args.seconds)
        return summary(what, results, time.monotonic() - started)


def scratch():
    """Memory, where there is some: thousands of small files come and go."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(judge, first, deadline):
    """Results of as many inputs as there is time for, in the order of their numbers."""
    results, running = [], []
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        while running or time.monotonic() < deadline:
            while len(running) < 2 * os.cpu_count() and time.monotonic() < deadline:
                running.append(pool.submit(judge, range(first, first + BATCH)))
                first += BATCH
            if running:
                results += running.pop(0).result()
    return results


def judge_batch(what, seeds, example, keep, numbers):
    """(number, verdict, detail) of each input."""
    module = importlib.import_module(f"readers.{what}")
    originals = [(path.name, path.read_bytes()) for path in sorted(seeds.iterdir())]
    results = []
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        inputs = {}
        for number in numbers:
            path = pathlib.Path(folder, str(number))
            module.make(random.Random(f"{what} {number}"), originals, path)
            inputs[number] = path
        ours = read_ours(example, list(inputs.values()))
        for number, path in inputs.items():
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, keep / f"{what}-{number}")
            results.append((number, *verdict(module, path, ours[path])))
            path.unlink()
    return results


def verdict(module, path, lines):
    if lines[0].startswith("crash\t"):
        return "CRASH", lines[0].split("\t", maxsplit=1)[1]
    if lines[0].startswith("refused\t"):
        accepted = module.accepts(path)
        return "we refuse" if accepted else "both refuse", reason(lines[0].split("\t", maxsplit=1)[1], path)
    return module.compare(path, lines)


def read_ours(example, paths):
    """By input, the lines that the example prints; a separate process for each if one cannot be read."""
    try:
        done = subprocess.run([example, *paths], capture_output=True, check=False, timeout=PATIENCE)
        code, said = done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        code, said = 1, f"takes more than {PATIENCE} s"
    if code == 0:
        blocks = re.split(r"^(?:image|volume|archive)\t(.*)\n", done.stdout.decode(), flags=re.MULTILINE)
        return {pathlib.Path(name): lines.splitlines() for name, lines in zip(blocks[1::2], blocks[2::2])}
    if len(paths) == 1:
        return {paths[0]: ["crash\t" + " ".join(said.split())[-300:]]}
    return {path: lines for one in paths for path, lines in read_ours(example, [one]).items()}


def reason(said, path):
    """The reason of a refusal, without input-specific parts."""
    said = said.replace(str(path), "").lstrip(": ")
    said = re.sub(r'"(?:[^"\\]|\\.)*"', "NAME", said)
    said = re.sub(r"\b(0x[0-9a-f]+|-?\d[0-9.]*)\b", "N", said)
    return re.sub(r" when getting (\w+) for .*|: [^ ]*(?=: a directory stands| needs)", r" in \1", said)[:110]


def summary(what, results, seconds):
    """Prints differences and tables; returns whether there are none."""
    counts = collections.Counter(verdict for _, verdict, _ in results)
    bad = [result for result in results if result[1].isupper()]
    for number, verdict_, detail in bad[:SHOWN]:
        print(f"FAIL: {what} --seed {number}: {verdict_}: {detail}")
    if len(bad) > SHOWN:
        print(f"FAIL: {what}: {len(bad) - SHOWN} more: " + " ".join(str(number) for number, _, _ in bad[SHOWN:SHOWN + 100]))
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    print(f"{'FAIL' if bad else 'ok  '}  {what}: {len(results)} inputs in {seconds:.0f} s: {told}", flush=True)
    for label in ("we refuse", "exempt"):
        for detail, count in collections.Counter(detail for _, verdict, detail in results if verdict == label).most_common():
            print(f"{count:8} {label}: {detail}")
    return not bad


if __name__ == "__main__":
    main()
