"""The host and tools of a measurement."""

import hashlib
import os
import pathlib
import re
import subprocess

# Free memory in pieces from this order on is given back to a virtual machine's host, which takes its time to give it again: those runs are
# slower that happen to get such memory. Above the largest order, none is.
REPORTING = pathlib.Path("/sys/module/page_reporting/parameters/page_reporting_order")
TOOLS = {"qemu-img": "qemu-img", "cp": "cp", "gunzip": "gunzip", "mke2fs": "mke2fs", "fakeroot": "fakeroot", "virt-customize": "virt-customize"}


def describe(vmbake, folder):
    """Properties of the host on which the numbers depend, for the JSON."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)", cpuinfo, re.MULTILINE)
    memory = re.search(r"^MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model.group(1) if model else "unknown",
        "memory_mib": int(memory.group(1)) // 1024,
        "page_reporting_order": int(REPORTING.read_text()) if REPORTING.exists() else None,
        "kernel": os.uname().release,
        "file_system": _said("findmnt", "-no", "FSTYPE", "--target", folder),
        "load_before": os.getloadavg()[0],
        "vmbake": {"version": _said(vmbake, "--version"), "sha256": hashlib.sha256(pathlib.Path(vmbake).read_bytes()).hexdigest()},
        "tools": {name: _said(command, "-V" if name == "mke2fs" else "--version") for name, command in TOOLS.items()},
    }


def _said(*command):
    """The first line that a program says, or None where it is not installed."""
    try:
        result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except FileNotFoundError:
        return None
    return result.stdout.partition("\n")[0].strip()
