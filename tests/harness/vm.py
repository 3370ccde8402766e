"""A machine in qemu, started by `vmbake boot`: its console, its root shell, its power.

The image is never written to; the disk of the machine is an overlay in a directory of the caller, and is kept from boot
to boot. Console output and shell commands are kept next to it, as console.log and shell.log.
"""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import threading
import time

from harness.asks import Asks
from harness.paths import VMBAKE
from harness.run import held
from harness.shell import IDLE, Lost, Shell, credentials, smbios

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 900.0  # seconds, for what takes some on an emulated machine with a busy host; the budget of a case is shorter
# None of them gets better.
PANIC = re.compile(r"Kernel panic|You are in emergency mode|grub rescue>|Entering emergency mode|Gave up waiting for root")
# What a reader of the report wants to know the time of.
MILESTONES = {
    "kernel": r"Linux version|Run /init|Loading, please wait",
    "systemd": r"Welcome to|systemd\[1\]: Hostname set|Debian GNU/Linux 13 \S+ ttyS0",
    "login": r"login: ",
    "configured": r"vmbake-firstboot: configured \w+",
}
# For firmware="direct", in place of what a case asks for. Without `bpf` among the security modules: systemd would compile a program
# for it.
QUICK = "mitigations=off nokaslr quiet loglevel=3 audit=0 lsm=landlock,lockdown,yama"
# Machines that are on.
running = set()


class Vm(Asks):
    """`options` become options of `vmbake boot`: firmware="uefi", memory="1536M", append="quiet" …"""

    def __init__(self, image, folder, user_data=None, meta_data=None, network="isolated", guests=None, more=(), masked=IDLE, heard=None, **options):
        self.image, self.folder = pathlib.Path(image).resolve(), pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.thread, self.options, self.network, self.guests, self.more = threading.get_ident(), options, network, guests or {}, list(more)
        if options.get("firmware") == "direct":
            options.setdefault("append", QUICK)
        self.seed = {"user-data": user_data, "meta-data": meta_data}
        named = re.search(r"^local-hostname: (\S+)$", meta_data or "", re.MULTILINE)
        self.hostname = named.group(1) if named else "vmbake"
        self.masked, self.heard = masked, heard or (lambda seconds, what: None)
        self.disk, self.log, self.transcript = self.folder / "disk.qcow2", self.folder / "console.log", self.folder / "shell.log"
        self.qemu, self.shell_, self.trouble, self.cpu, self.boots = None, None, None, 0.0, 0
        self.text, self.mark, self.news = "", 0, threading.Condition()

    def boot(self, patience=PATIENCE, shell=True):
        """Switches it on; returns once the shell answers, or at once."""
        self.shell_ = Shell(self.folder, self.transcript)
        self.boots, self.mark, self.started_at, self.trouble = self.boots + 1, len(self.text), time.monotonic(), None
        # A separate session: a signal to the runner is not sent to the machine.
        self.qemu = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.listener = threading.Thread(target=self._listen, args=(self.qemu,), daemon=True)
        self.listener.start()
        running.add(self)
        if shell:
            self.ready(patience)

    def ready(self, patience=PATIENCE):
        """Waits for the shell of this boot."""
        self._lost(lambda: self.shell_.ready(time.monotonic() + patience))
        self.heard(time.monotonic() - self.started_at, "shell")

    def booted(self, patience=PATIENCE):
        """Waits for the end of the boot; whether it ended. That no unit failed is another question."""
        code, said = self.shell("systemctl is-system-running --wait", patience=patience)
        return said.strip() in ("running", "degraded"), said

    def shell(self, script, given=b"", patience=120):
        """Runs a script as root: exit code and all that it said. 124: it took longer than `patience` seconds."""
        code, said = self.bytes(script, given, patience)
        return code, said.decode(errors="replace")

    def bytes(self, script, given=b"", patience=120):
        return self._lost(lambda: self.shell_.ask(script, given, patience))

    def run(self, *command, input=None, patience=120):
        """Runs a program: exit code and all that it said."""
        given = input.encode() if isinstance(input, str) else input or b""
        return self.shell(shlex.join(map(str, command)), given, patience)

    def put(self, path, content, mode=0o644, owner="root:root"):
        """Writes a file, which appears whole."""
        path, partial = shlex.quote(path), shlex.quote(f"{path}.partial")
        code, said = self.shell(f"cat >{partial} && chmod {mode:o} {partial} && chown {owner} {partial} && mv {partial} {path}", content)
        if code != 0:
            raise Lost(f"{path} cannot be written: {said}")

    def get(self, path):
        """The content of a file, or None."""
        code, said = self.bytes(f"test -f {shlex.quote(path)} && cat {shlex.quote(path)}")
        return said if code == 0 else None

    def read(self, path):
        return self.get("/" + str(path).removeprefix("/"))

    def image_size(self):
        """Bytes of the disk that the image is."""
        return json.loads(call("qemu-img", "info", "--output=json", self.image))["virtual-size"]

    def console(self):
        """Console output of all boots, without colors."""
        with self.news:
            return plain(self.text)

    def wait(self, pattern, patience=PATIENCE):
        """Waits until the console of this boot shows it; returns the match."""
        deadline = time.monotonic() + patience
        with self.news:
            while True:
                found = re.search(pattern, plain(self.text[self.mark:]), re.MULTILINE)
                if found:
                    return found
                if self.qemu is None or self.qemu.returncode is not None:
                    raise Lost(self.trouble or f"the machine shut down before the console showed {pattern!r}")
                if not self.news.wait(deadline - time.monotonic()):
                    raise Lost(f"the console does not show {pattern!r} in {patience:.0f} s")

    def until(self, holds, patience=PATIENCE):
        """Whether it held before patience ran out. It is a state of the machine's systemd, which is not visible outside."""
        return held(holds, patience, 0.5)

    def poweroff(self, patience=PATIENCE):
        """An orderly shutdown."""
        self.shell_.send("systemctl poweroff --no-block", patience=patience)
        self.off(patience)

    def off(self, patience=PATIENCE):
        """Waits until it is off."""
        self.listener.join(patience)
        if self.listener.is_alive():
            self.kill()
            raise Lost(f"the machine is still on after {patience:.0f} s")
        self._reaped()
        if self.trouble:
            raise Lost(self.trouble)

    def reboot(self, patience=PATIENCE):
        """An orderly shutdown and a new start; returns once the shell answers.

        A reset takes minutes under emulation, in which firmware and kernel overwrite translated code.
        """
        self.poweroff(patience)
        self.boot(patience)

    def kill(self):
        """A power cut."""
        if self.qemu is not None and self.qemu.returncode is None:
            self.qemu.send_signal(signal.SIGKILL)
            self.listener.join()
            self._reaped()

    def alive(self):
        return self.listener.is_alive()

    def close(self):
        self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _lost(self, ask):
        try:
            return ask()
        except Lost as lost:
            # The console may know why, once it is read to its end.
            self.listener.join(1)
            if not self.alive():
                raise Lost(f"{lost}: {self.trouble or ''}\n{self.console()[-3000:]}") from lost
            raise

    def _reaped(self):
        running.discard(self)
        self.shell_.close()
        self.qemu.stdout.close()

    def _listen(self, qemu):
        """Keeps the console, until qemu ends."""
        waiting = {name: re.compile(pattern) for name, pattern in MILESTONES.items()}
        with open(self.log, "ab") as file:
            while chunk := os.read(qemu.stdout.fileno(), 65536):
                file.write(chunk)
                file.flush()
                with self.news:
                    self.text += chunk.decode(errors="replace")
                    fresh = plain(self.text[self.mark:])
                    self.news.notify_all()
                for name in [name for name, pattern in waiting.items() if pattern.search(fresh)]:
                    del waiting[name]
                    self.heard(time.monotonic() - self.started_at, name)
                panic = PANIC.search(fresh)
                if panic and not self.trouble:
                    self.trouble = f"the boot failed: {panic.group(0)}"
                    # The lines that explain it are still to come.
                    threading.Timer(3, qemu.kill).start()
        _, status, usage = os.wait4(qemu.pid, 0)
        self.shell_.gone()
        with self.news:
            qemu.returncode = os.waitstatus_to_exitcode(status)
            self.cpu += usage.ru_utime + usage.ru_stime
            if qemu.returncode > 0:
                self.trouble = self.trouble or f"qemu failed: {self.text[self.mark:][-2000:]}"
            self.news.notify_all()

    def _command(self):
        values = {"disk": self.disk, "network": "none" if self.guests else self.network, **self.options}
        for name, content in self.seed.items():
            if content is not None:
                values[name] = self.folder / name
                values[name].write_text(content)
        options = [word for name, value in values.items() if value is not None for word in (f"--{name}", str(value))]
        more = self._network() + smbios(self.folder, credentials(self.masked)) + self.shell_.arguments() + self.more
        # Whatever ends the runner ends its machines.
        return ["setpriv", "--pdeathsig", "KILL", VMBAKE, "boot", self.image, *options, "--", *more]

    def _network(self):
        """The network of `vmbake boot --network` with servers of this host: each connection starts bridge.py."""
        if not self.guests:
            return []
        forwards = "".join(f",guestfwd=tcp:{address}-cmd:{HERE}/bridge.py {target}" for address, target in self.guests.items())
        return ["-netdev", f"user,id=net0,restrict={'off' if self.network == 'user' else 'on'}{forwards}", "-device", "virtio-net-pci,netdev=net0,romfile="]


def power_cut(thread):
    """Ends all machines that a thread has started, or all that there are."""
    for vm in [vm for vm in running if thread in (None, vm.thread)]:
        vm.trouble = "the power was cut"
        vm.qemu.kill()


def call(*command):
    """Output of a program on this host."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {result.returncode}: {result.stdout.strip()}")
    return result.stdout


def plain(text):
    """Without colours and other control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
