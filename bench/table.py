#!/usr/bin/env python3
"""table.py VMBAKE BASE [OPTION...]: the table of the costs of a bake, compared with other tools, in one run on this machine and from one input: BASE
(amd64), and the artifacts of knd and knc in the sizes of real releases (inputs.py).

Every run is a whole process; of several, the median counts. Before each, all that is still to be written is synced, and the inputs are
read into the page cache; --cold-pages drops that instead. "Store cold" is a store with downloaded files alone, "store warm" one that a
bake has used. Exit status 1 if a limit is exceeded. Only ratios are meaningful; seconds depend on the machine.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import host
import inputs
import row
from cases import CASES, Bench
from measure import Failed

from harness.paths import ROOT
from harness.upstream import bake

HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser(prog="table.py")
    parser.add_argument("vmbake")
    parser.add_argument("base")
    parser.add_argument("--arm64", metavar="BASE", help="of that architecture, too, where several images are baked at once")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/bench", help="takes some 16 GB")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "docs/bench/table.json")
    parser.add_argument("--size", default="8G", help="of the disk")
    parser.add_argument("--runs", type=int, default=3, choices=range(1, inputs.RELEASES + 1))
    parser.add_argument("--scale", type=float, default=1.0, help="of the artifacts; other than 1 only to try the table")
    parser.add_argument("--only", action="append", choices=CASES, help="may be given several times")
    parser.add_argument("--cold-pages", action="store_true", help="drop the page cache before each run (root)")
    parser.add_argument("--no-judge", action="store_true", help="exit status 0 also when a bar is missed")
    return parser.parse_args()


def main():
    options = arguments()
    about = host.describe(options.vmbake, ROOT)
    bases = {"amd64": options.base} | ({"arm64": options.arm64} if options.arm64 else {})
    bake.bake(options.vmbake, bases)
    # A separate process: otherwise its memory would count for every process that this one starts.
    named = [f"{arch}={base}" for arch, base in bases.items()]
    subprocess.run([HERE / "inputs.py", options.work / "inputs", str(options.scale), *named], check=True)
    made = inputs.Inputs(options.work / "inputs")
    work = options.work / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    bench = Bench(options.vmbake, bases, made, work, options)
    pages = "dropped before each run" if options.cold_pages else "inputs read before each run"
    print(f"artifacts of knc: {made.bytes('knc') / 1e6:.0f} MB, base {os.stat(options.base).st_size / 1e6:.0f} MB, disk {options.size}; page cache: {pages}")
    rows = []
    for name in options.only or CASES:
        for found in CASES[name](bench):
            rows.append(found)
            print(f"  {found.case}: {found.verdict}", file=sys.stderr, flush=True)
    shutil.rmtree(work)
    print("\n".join(row.table(rows)))
    about["load_after"] = os.getloadavg()[0]
    document = {"machine": about, "page_cache": pages, "runs": options.runs,
                "size": options.size, "scale": options.scale, "artifact_bytes": made.bytes("knc"), "rows": [found.json() for found in rows]}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    missed = sum(found.verdict == "MISSED" for found in rows)
    print(f"{missed} of {len(rows)} bars missed; {options.json}")
    return 1 if missed and not options.no_judge else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, bake.Failed) as failed:
        sys.exit(f"table.py: {failed}")
