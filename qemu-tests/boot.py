#!/usr/bin/python3
"""boot.py [options] IMAGE CASE: boots IMAGE in an emulated machine, runs the shell script CASE in it, and judges.

IMAGE (qcow2 or raw) is never written: the machine runs on an overlay in a temporary folder. CASE reaches the machine as
NoCloud user-data on a second disk. It runs when the boot has finished and reports each assertion on the serial console:

    VMBAKE-TEST <name> ok
    VMBAKE-TEST <name> FAIL <output of the command, on one line>
    VMBAKE-TEST done <number of assertions>

Comments of the form `# boot: <key> <value>` in CASE say what the machine is and what else its console must show:

    # boot: expect <regular expression>    must appear on the console; may be given more than once
    # boot: grow <bytes, with K, M or G>   how much bigger than the image the disk is

The exit status is 0 only if all assertions are ok, none of their reports got lost, and every `expect` appeared.
"""
import argparse
import base64
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
OVMF = [("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), ("OVMF_CODE.fd", "OVMF_VARS.fd")]
REPORT = re.compile(r"VMBAKE-TEST (\S+) (ok|FAIL)\b(.*)")
DONE = re.compile(r"VMBAKE-TEST done (\d+)\r*\n")
PANIC = re.compile(r"Kernel panic|You are in emergency mode|grub rescue>")
# What a reader of the log wants to know the time of.
MILESTONES = {
    "kernel": r"Linux version|Run /init|Loading, please wait",
    "systemd": r"Welcome to|systemd\[1\]: Hostname set|Debian GNU/Linux 13 \S+ ttyS0",
    "login": r"login: ",
}
# Units that only cost time under emulation and that no case asserts anything about.
IDLE = ["apt-daily.timer", "apt-daily-upgrade.timer", "man-db.timer", "unattended-upgrades.service"]
DIRECT = "ro console=ttyS0 mitigations=off nokaslr quiet loglevel=3 apparmor=0 audit=0 systemd.show_status=0 panic=-1"


def main():
    options = arguments()
    with open(options.case) as file:
        case = file.read()
    directives = re.findall(r"^# boot: (\S+) (.*)$", case, re.MULTILINE)
    expected = [value for key, value in directives if key == "expect"]
    grow = [value for key, value in directives if key == "grow"]
    unknown = {key for key, _ in directives} - {"expect", "grow"}
    if unknown:
        sys.exit(f"{options.case}: unknown directive: {', '.join(sorted(unknown))}")

    with tempfile.TemporaryDirectory(prefix="vmbake-boot.") as folder:
        disk = overlay(options.image, grow[-1] if grow else "0", folder)
        seed = nocloud_seed(case, folder)
        command = machine(options, disk, seed, folder)
        console, seconds = run(command, options.log, options.timeout, options.verbose)
    problems = judge(console, expected)
    for problem in problems:
        print(f"boot.py: {problem}", file=sys.stderr)
    verdict = "FAIL" if problems else "ok"
    print(f"{verdict}: {os.path.basename(options.case)} ({options.firmware}, {options.accel}) in {seconds:.0f} s; log {options.log}")
    sys.exit(1 if problems else 0)


def arguments():
    parser = argparse.ArgumentParser(description="boots IMAGE and runs CASE in it")
    parser.add_argument("image")
    parser.add_argument("case")
    parser.add_argument("--firmware", choices=["bios", "uefi", "direct"], default="bios",
                        help="SeaBIOS, OVMF, or the image's kernel started by qemu itself (fastest)")
    parser.add_argument("--accel", choices=["auto", "kvm", "tcg"], default="auto")
    parser.add_argument("--memory", default="1536", help="MiB")
    parser.add_argument("--timeout", type=float, default=900, help="seconds")
    parser.add_argument("--log", help="where the console goes (default: <case>.<firmware>.log in the current folder)")
    parser.add_argument("--verbose", action="store_true", help="also print the console")
    options = parser.parse_args()
    name = os.path.splitext(os.path.basename(options.case))[0]
    options.log = options.log or f"{name}.{options.firmware}.log"
    if options.accel == "auto":
        options.accel = "kvm" if kvm_works() else "tcg"
    return options


def kvm_works():
    """Whether SeaBIOS gets to say a word: on some machines /dev/kvm opens but runs no guest."""
    command = ["qemu-system-x86_64", "-accel", "kvm", "-M", "q35", "-cpu", "max", "-nodefaults", "-display", "none",
               "-chardev", "stdio,id=debug", "-device", "isa-debugcon,iobase=0x402,chardev=debug", "-no-reboot",
               "-boot", "reboot-timeout=0"]
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False).stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
    return b"No bootable device" in said


def image_format(path):
    with open(path, "rb") as file:
        return "qcow2" if file.read(4) == b"QFI\xfb" else "raw"


def overlay(image, grow, folder):
    """A disk that reads from `image`, is bigger than it by `grow`, and keeps what is written to itself."""
    path = f"{folder}/disk.qcow2"
    call("qemu-img", "create", "-q", "-f", "qcow2", "-F", image_format(image), "-b", os.path.realpath(image), path)
    if grow != "0":
        call("qemu-img", "resize", "-q", path, f"+{grow}")
    return path


def nocloud_seed(case, folder):
    """A FAT file system labelled CIDATA whose user-data starts the case when the boot has finished."""
    with open(f"{HERE}/cases/lib.sh") as file:
        script = file.read() + case + "\nfinish\n"
    config = {
        "write_files": [{"path": "/run/vmbake-test.sh", "encoding": "b64",
                         "content": base64.b64encode(script.encode()).decode()}],
        "bootcmd": [["systemctl", "mask", "--runtime", "--now", *IDLE]],
        # Not run by cloud-init itself: the boot has not finished before cloud-init has.
        "runcmd": [["systemd-run", "--no-block", "--collect", "--unit=vmbake-test", "sh", "/run/vmbake-test.sh"]],
        "ssh_genkeytypes": ["ed25519"],
        "package_update": False,
    }
    files = {"meta-data": "instance-id: vmbake-test\nlocal-hostname: vmbake-test\n",
             "user-data": "#cloud-config\n" + json.dumps(config, indent=1) + "\n"}
    path = f"{folder}/seed.img"
    call("truncate", "-s", "2M", path)
    call("mkfs.vfat", "-n", "CIDATA", path)
    for name, content in files.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(content)
        call("mcopy", "-i", path, f"{folder}/{name}", f"::{name}")
    return path


def machine(options, disk, seed, folder):
    command = ["qemu-system-x86_64", "-M", "q35", "-m", options.memory, "-smp", "2", "-nodefaults", "-display", "none",
               "-serial", "stdio", "-no-reboot", "-device", "virtio-rng-pci",
               # DHCP and nothing else: a baked image needs no network to come up.
               "-nic", "user,model=virtio-net-pci,restrict=on",
               "-drive", f"file={disk},format=qcow2,if=virtio,cache=unsafe,discard=unmap",
               "-drive", f"file={seed},format=raw,if=virtio,readonly=on"]
    if options.accel == "kvm":
        command += ["-accel", "kvm", "-cpu", "host"]
    else:
        # Without cx16: qemu 7.2 emulates cmpxchg16b wrongly now and then, and the kernel's allocator panics.
        command += ["-accel", "tcg,thread=multi", "-cpu", "max,-cx16"]
    if options.firmware == "uefi":
        code, variables = next(((f"/usr/share/OVMF/{c}", f"/usr/share/OVMF/{v}") for c, v in OVMF
                                if os.path.exists(f"/usr/share/OVMF/{c}")), (None, None))
        if code is None:
            sys.exit("no OVMF in /usr/share/OVMF\nhint: apt-get install ovmf")
        call("cp", variables, f"{folder}/vars.fd")
        command += ["-drive", f"if=pflash,format=raw,readonly=on,file={code}",
                    "-drive", f"if=pflash,format=raw,file={folder}/vars.fd"]
    if options.firmware == "direct":
        kernel, initrd, root = boot_files(options.image, folder)
        command += ["-kernel", kernel, "-initrd", initrd, "-append", f"root=PARTUUID={root} {DIRECT}"]
    return command


def boot_files(image, folder):
    """The kernel and the initrd of partition 1, and its GUID."""
    raw = f"{folder}/boot.raw"
    call("qemu-img", "convert", "-O", "raw", image, raw)
    partition = call("sgdisk", "-i", "1", raw)
    guid = re.search(r"Partition unique GUID: (\S+)", partition).group(1).lower()
    offset = int(re.search(r"First sector: (\d+)", partition).group(1)) * 512
    volume = f"{raw}?offset={offset}"
    names = re.findall(r"/((?:vmlinuz|initrd\.img)-[^/]+)/", call("debugfs", "-R", "ls -p /boot", volume))
    paths = []
    for prefix in ("vmlinuz", "initrd"):
        newest = max((name for name in names if name.startswith(prefix)), default=None)
        if newest is None:
            sys.exit(f"{image}: no /boot/{prefix}* in partition 1")
        call("debugfs", "-R", f"dump /boot/{newest} {folder}/{prefix}", volume)
        paths.append(f"{folder}/{prefix}")
    os.unlink(raw)
    return *paths, guid


def run(command, log, timeout, verbose):
    """The console of the machine from power on to power off, and how many seconds that took."""
    start = time.monotonic()
    waiting = {name: re.compile(pattern) for name, pattern in MILESTONES.items()}
    console, reported = "", 0
    with open(log, "wb") as file, selectors.DefaultSelector() as selector:
        qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            selector.register(qemu.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0, start + timeout - time.monotonic())):
                    print(f"boot.py: not finished after {timeout:.0f} s", file=sys.stderr)
                    break
                chunk = os.read(qemu.stdout.fileno(), 65536)
                if not chunk:
                    break
                file.write(chunk)
                file.flush()
                console += chunk.decode(errors="replace")
                if verbose:
                    sys.stderr.write(chunk.decode(errors="replace"))
                for name in [name for name, pattern in waiting.items() if pattern.search(console)]:
                    del waiting[name]
                    print(f"{time.monotonic() - start:6.1f} s  {name}", flush=True)
                # Only whole lines: the rest of the last one is still to come.
                reports = list(REPORT.finditer(console[:console.rfind("\n") + 1]))
                for report in reports[reported:]:
                    print(f"{time.monotonic() - start:6.1f} s  {report.group(0).strip()}", flush=True)
                reported = len(reports)
                if PANIC.search(console):
                    time.sleep(1)  # for the lines that explain it
                    file.write(os.read(qemu.stdout.fileno(), 65536) if selector.select(0) else b"")
                    break
        finally:
            qemu.kill()
            qemu.wait()
    return console, time.monotonic() - start


def judge(console, expected):
    """What is wrong with this console: nothing, if the list is empty."""
    problems = []
    panic = PANIC.search(console)
    if panic:
        problems.append(f"the boot failed: {panic.group(0)}")
    reports = REPORT.findall(console)
    problems += [f"{name} failed:{output.rstrip()}" for name, verdict, output in reports if verdict == "FAIL"]
    done = DONE.search(console)
    if not done:
        problems.append("the case did not finish")
    elif int(done.group(1)) != len(reports) or not reports:
        problems.append(f"the case made {done.group(1)} assertions, the console shows {len(reports)}")
    problems += [f"the console does not show {pattern!r}" for pattern in expected if not re.search(pattern, console)]
    return problems


def call(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}\n{result.stderr.strip()}")
    return result.stdout


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    main()
