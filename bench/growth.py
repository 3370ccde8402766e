#!/usr/bin/env python3
"""growth.py VMBAKE BASE [OPTION...]: how time and memory of a bake grow with the number of files, with bytes and with layers.

Each point is a bake of BASE with synthetic artifacts and layers (synthetic.py), as qcow2 on a disk of fixed size, from a store of
downloads only, with the inputs in the page cache. The cost of BASE is in every point: it is the intercept. Prints the straight
line through the points (least squares) and how far the worst point is from it, and writes growth-AXIS.json and growth-AXIS.svg.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import host
import measure
import plot
import synthetic

from harness.paths import ROOT

HERE = pathlib.Path(__file__).resolve().parent
# What grows: values, the name of one, size of the disk: ext4 has an inode for each 16 KiB.
AXES = {"files": ([1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000], "file", "24G"),
        "bytes": ([1, 2, 4, 8, 16, 32], "GiB", "40G"),
        "layers": ([1, 2, 5, 10, 20, 50, 100], "layer", "8G")}
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def arguments():
    parser = argparse.ArgumentParser(prog="growth.py")
    parser.add_argument("vmbake")
    parser.add_argument("base")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/bench/growth", help="takes some 12 GB for 32 GiB of content")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/bench")
    parser.add_argument("--only", action="append", choices=AXES, help="may be given several times")
    parser.add_argument("--most", type=int, default=1 << 40, help="leaves larger values out")
    parser.add_argument("--runs", type=int, default=3, help="of each point; the median counts")
    return parser.parse_args()


def point(options, axis, value, size):
    """Runs of the bake of one point. A store of downloads alone for each."""
    work = options.work
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # A separate process: otherwise its memory would count as the bake's.
    subprocess.run([HERE / "synthetic.py", work, axis, str(value)], check=True)
    made = synthetic.Made(work)
    runs = []
    for number in range(options.runs):
        for entry in made.store.iterdir():
            if entry.name != "blobs":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        measure.settle()
        measure.warm(made.store, made.layers, options.base)
        out = work / f"out-{number}"
        command = [options.vmbake, "bake", synthetic.KIND, "--offline", "--manifest", made.manifest, "--layers", made.layers, "--store", made.store,
                   "--base", options.base, "--size", size, "--format", "qcow2", "--out", out]
        runs.append(measure.run(command, work / "log", **EPOCH))
        shutil.rmtree(out)
    shutil.rmtree(work)
    return runs


def grow(options, axis):
    values, unit, size = AXES[axis]
    found = []
    for value in (value for value in values if value <= options.most):
        runs = point(options, axis, value, size)
        usage = measure.median(runs)
        found.append({"value": value, "seconds": usage.wall, "cpu_seconds": usage.cpu, "peak_mib": max(run.peak_mib for run in runs),
                      "runs": [vars(run) for run in runs]})
        print(f"  {axis} {value}: {usage.wall:.2f} s, {found[-1]['peak_mib']:.0f} MiB", file=sys.stderr, flush=True)
    lines, panels = {}, []
    for key, name, short in (("seconds", "time", "s"), ("cpu_seconds", "processor time", "s"), ("peak_mib", "peak memory", "MiB")):
        points = [(entry["value"], entry[key]) for entry in found]
        slope, intercept, (worst, at) = fit = plot.line(points)
        lines[key] = {"slope": slope, "intercept": intercept, "worst_deviation": worst, "worst_at": at}
        note = f"{intercept:.3g} {short} + {slope:.3g} {short} for each {unit}; worst point {worst * 100:.1f} % off"
        print(f"{axis}, {name}: {note}, at {at}", flush=True)
        panels.append({"title": f"{name} against {axis}", "x": "GiB" if axis == "bytes" else axis, "y": short, "points": points, "fit": fit, "note": note})
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"axis": axis, "unit": unit, "disk": size, "runs": options.runs, "points": found, "lines": lines}
    (options.out / f"growth-{axis}.svg").write_text(plot.svg(f"Cost of a bake against {axis}", panels))
    return document


def main():
    options = arguments()
    about = host.describe(options.vmbake, ROOT)
    for axis in options.only or AXES:
        document = {"machine": {**about, "load_before": os.getloadavg()[0]}, **grow(options, axis)}
        (options.out / f"growth-{axis}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except measure.Failed as failed:
        sys.exit(f"growth.py: {failed}")
