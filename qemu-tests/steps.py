"""Runs the steps of a case: a Case and a machine in, reports of checks out."""

import os
import re
import subprocess

from harness.shell import Lost
from harness.vm import VMBAKE, call

ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def run(case, vm, check):
    """Runs the steps of a case; calls `check(name, ok, said)` for each check."""
    for word, argument in case.steps:
        STEPS[word](vm, check, argument)


def lint(vm, check, _):
    """The image, before any machine has seen it."""
    result = subprocess.run([VMBAKE, "lint", vm.image], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check("lint", result.returncode == 0, result.stdout)


def boot(vm, check, _):
    vm.boot()


def booted(vm, check, _):
    ended, said = vm.booted()
    check("booted", ended, said)


def wait(vm, check, patterns):
    for name, pattern in patterns.items():
        try:
            check(name, bool(vm.wait(pattern)))
        except Lost as lost:
            check(name, False, lost)
            raise


def shell(vm, check, scripts):
    for name, script in scripts.items():
        code, said = vm.shell(script)
        check(name, code == 0, f"exit status {code}\n{said}")


def silent(vm, check, scripts):
    for name, script in scripts.items():
        code, said = vm.shell(script)
        check(name, code == 0 and not said.strip(), f"exit status {code}\n{said}")


def put(vm, check, files):
    for path, file in files.items():
        vm.put(path, **file)


def ask(vm, check, functions):
    for _, function in functions:
        function(vm)


def e2fsck(vm, check, _):
    """The root file system that the machine left, by e2fsck of the host."""
    raw, offset = left(vm)
    result = subprocess.run(["e2fsck", "-fn", f"{raw}?offset={offset}"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=ENVIRONMENT, check=False)
    check("e2fsck", result.returncode == 0, result.stdout)


def verify(vm, check, _):
    """The files of packages that the machine left, by dpkg of the host: below emulation it hashes for a minute."""
    if os.getuid() != 0 and not os.environ.get("CI"):
        check("dpkg --verify", None, "needs root, for a mount")
        return
    raw, offset = left(vm)
    mount = vm.folder / "left"
    mount.mkdir(exist_ok=True)
    # In a separate namespace nothing stays mounted, however it ends. A journal that a power cut left is not played.
    script = 'mount -o "ro,noload,loop,offset=$1" "$2" "$3" && dpkg --root="$3" --verify'
    result = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(offset), raw, mount], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=ENVIRONMENT, check=False)
    check("dpkg --verify", result.returncode == 0 and not result.stdout, result.stdout)


def left(vm):
    """The disk of a machine that is off, as a raw file, and where its root file system begins."""
    raw = vm.folder / "left.raw"
    if not raw.exists() or raw.stat().st_mtime < vm.disk.stat().st_mtime:
        call("qemu-img", "convert", "-O", "raw", vm.disk, raw)
    first = re.search(r"First sector: (\d+)", call("sgdisk", "-i", "1", raw)).group(1)
    return raw, int(first) * 512


STEPS = {
    "lint": lint, "boot": boot, "booted": booted, "wait": wait, "check": shell, "silent": silent, "put": put, "ask": ask, "e2fsck": e2fsck, "dpkg-verify": verify,
    "poweroff": lambda vm, check, _: vm.poweroff(),
    "reboot": lambda vm, check, _: vm.reboot(),
    "kill": lambda vm, check, _: vm.kill(),
    "off": lambda vm, check, _: vm.off(),
}
