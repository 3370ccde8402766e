#!/usr/bin/env python3
"""measure.py NAME COMMAND…: runs a command and prints its wall time, CPU time and peak memory in one line.

As a module: the cost of one run of a process, and the state of the page cache before it.
"""

import dataclasses
import mmap
import os
import pathlib
import statistics
import sys
import time


class Failed(Exception):
    """A command that was to be measured did not succeed."""


@dataclasses.dataclass
class Usage:
    """Resource usage of a process and its children."""

    wall: float
    cpu: float
    peak_mib: float


def run(command, output=None, **environment):
    """Runs a command that must succeed; its output goes to the file `output`."""
    command = [os.fspath(part) for part in command]
    said = os.open(output or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, said, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
        start = time.perf_counter()
        process = os.posix_spawnp(command[0], command, {**os.environ, **environment}, file_actions=actions)
        _, status, used = os.wait4(process, 0)
        wall = time.perf_counter() - start
    finally:
        os.close(said)
    if (code := os.waitstatus_to_exitcode(status)) != 0:
        tail = pathlib.Path(output).read_text(errors="replace")[-2000:] if output else ""
        raise Failed(f"{' '.join(command)}: exit status {code}\n{tail}")
    return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(runs):
    """The run whose wall time is the median, of an even number the slower one of the two in the middle."""
    return sorted(runs, key=lambda usage: usage.wall)[len(runs) // 2] if runs else None


def spread(runs):
    """Of the wall times, (slowest - fastest) / median."""
    times = [usage.wall for usage in runs]
    return (max(times) - min(times)) / statistics.median(times)


def settle():
    """Syncs pending writes, so that they do not disturb the next run."""
    os.sync()


def warm(*paths):
    """Reads files, and all below folders, into the page cache; holes are not read."""
    for path in map(pathlib.Path, paths):
        for file in [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file()):
            _read(file)


def _read(path):
    with open(path, "rb", buffering=0) as file:
        at, length = 0, os.fstat(file.fileno()).st_size
        buffer = mmap.mmap(-1, 1 << 20)
        while at < length:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            os.lseek(file.fileno(), at, os.SEEK_SET)
            while at < end and (count := file.readinto(buffer)):
                at += count


def forget():
    """Drops the page cache; needs root."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


if __name__ == "__main__":
    try:
        usage = run(sys.argv[2:])
    except Failed as failed:
        sys.exit(f"measure.py: {failed}")
    print(f"{sys.argv[1]:<44} {usage.wall:6.2f} s wall {usage.cpu:6.2f} s CPU {usage.peak_mib:6.0f} MiB")
