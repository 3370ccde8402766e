"""Reports of checks: `ok: NAME` or `FAIL: NAME` with details, and the list of failures."""

import os
import sys

failures = []


def case(name, ok, said=""):
    print(f"{'ok' if ok else 'FAIL'}: {name}", flush=True)
    if not ok:
        failures.append(name)
        print(str(said)[-4000:], flush=True)


def skip(why):
    """Skips a script that cannot run here; `make test` lists it at its end. In CI it is a failure."""
    what = os.path.basename(sys.argv[0])
    print(f"skipped: {what}: {why}", flush=True)
    note_skipped(f"{what}: {why}")
    return 1 if os.environ.get("CI") else 0


def note_skipped(line):
    if path := os.environ.get("VMBAKE_SKIPPED"):
        with open(path, "a") as file:
            print(line, file=file)
