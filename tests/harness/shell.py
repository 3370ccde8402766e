"""A root shell in a machine, by a virtio port: neither the image nor its user-data know of it.

systemd of the machine gets the agent (agent.sh) and its unit as credentials, from strings of the firmware (SMBIOS type 11) or from the
kernel's command line. Scripts enter; exit statuses and the bytes that were said leave. The agent is up before the
root file system is writable.
"""

import base64
import pathlib
import re
import socket
import time

HERE = pathlib.Path(__file__).resolve().parent
PORT = "vmbake-test"
# It waits for nothing, as the driver of the port is built into the kernel, and nothing stops it before the last processes are killed.
UNIT = f"""[Unit]
Description=Shell of the boot tests
DefaultDependencies=no
StartLimitIntervalSec=0
[Service]
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root
ExecStart=/bin/sh /run/credentials/@system/{PORT}.agent
KillMode=process
Restart=always
RestartSec=1s
OOMScoreAdjust=-900
"""
# Units that only cost time under emulation and that no case asserts anything about.
IDLE = ["apparmor.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
        "e2scrub_reap.service", "fstrim.timer", "grub-common.service", "man-db.timer", "unattended-upgrades.service"]
# How much slower than usual this host is: what has to end in time gets so much more of it.
slowness = [1.0]
READY = re.compile(rb"ready ([0-9a-f-]{36})\n")


class Lost(Exception):
    """The machine does not answer any more."""


def credentials(masked=IDLE):
    """Credentials for the machine's systemd: {name: content}."""
    given = {f"{PORT}.agent": (HERE / "agent.sh").read_bytes(), f"systemd.extra-unit.{PORT}.service": UNIT.encode(),
             f"systemd.unit-dropin.sysinit.target~{PORT}": f"[Unit]\nWants={PORT}.service\n".encode()}
    # On a busy host an emulated machine needs more than the usual 90 s to find its disks, and to start the journal.
    given["systemd.unit-dropin.dev-.device"] = b"[Unit]\nJobRunningTimeoutSec=10min\n"
    given["systemd.unit-dropin.systemd-.service"] = b"[Service]\nTimeoutStartSec=10min\nWatchdogSec=0\n"
    # A credential cannot be the link that masks a unit.
    return given | {f"systemd.unit-dropin.{unit}": b"[Unit]\nConditionPathExists=!/\n" for unit in masked}


def smbios(folder, given):
    """The same as arguments of qemu: one string each, from a file, so that no length or character matters to the command line."""
    arguments = []
    for number, (name, content) in enumerate(sorted(given.items())):
        path = pathlib.Path(folder) / f"credential-{number}"
        path.write_text(f"io.systemd.credential.binary:{name}={base64.b64encode(content).decode()}")
        arguments += ["-smbios", f"type=11,path={path}"]
    return arguments


class Shell:
    """The host's end of the port: a socket that listens before qemu starts, to which qemu connects."""

    def __init__(self, folder, transcript):
        self.path, self.transcript = pathlib.Path(folder) / "shell", transcript
        self.path.unlink(missing_ok=True)
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(str(self.path))
        self.server.listen(1)
        self.stream, self.buffer, self.number, self.boot = None, b"", 0, None

    def arguments(self):
        """For qemu."""
        return ["-device", "virtio-serial-pci", "-chardev", f"socket,id=shell,path={self.path}",
                "-device", f"virtserialport,chardev=shell,name={PORT}"]

    def ready(self, deadline):
        """Waits for the agent of a boot that was not seen before."""
        if self.stream is None:
            self.server.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                self.stream, _ = self.server.accept()
            except TimeoutError as error:
                raise Lost("qemu did not connect to the shell") from error
        while True:
            # What the last boot left unsaid is skipped.
            found = READY.search(self.buffer)
            if found:
                self.buffer = self.buffer[found.end():]
                if found.group(1) != self.boot:
                    self.boot = found.group(1)
                    return
            else:
                self._receive(deadline)

    def ask(self, script, given=b"", patience=120):
        """Runs a script; returns its exit status and the bytes that it said. 124: it took longer than `patience` seconds of a usual host."""
        patience *= slowness[0]
        self.send(script, given, patience)
        # The machine ends the script itself: what it said so far is worth having.
        deadline = time.monotonic() + patience + 30
        line = self._line(deadline)
        found = re.fullmatch(rb"answer (\d+) (\d+) (\d+)", line)
        if not found or int(found.group(1)) != self.number:
            raise Lost(f"instead of an answer the shell said {line!r}")
        size = int(found.group(3))
        while len(self.buffer) < size:
            self._receive(deadline)
        said, self.buffer = self.buffer[:size], self.buffer[size:]
        self._note(f"[exit status {int(found.group(2))}, {size} bytes]\n" + said.decode(errors="replace"))
        return int(found.group(2)), said

    def send(self, script, given=b"", patience=120):
        """Has a script run without waiting for its end."""
        self.number += 1
        self._note(f"$ {script}")
        text = script.encode()
        header = f"request {self.number} {patience:.0f} {len(text)} {len(given)}\n".encode()
        try:
            self.stream.settimeout(patience)
            self.stream.sendall(header + text + given)
        except OSError as error:
            raise Lost(f"the shell takes nothing: {error}") from error

    def gone(self):
        """qemu has exited: a waiter for its connection gets one that ends immediately."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            end.connect(str(self.path))

    def close(self):
        for end in (self.stream, self.server):
            if end is not None:
                end.close()
        self.path.unlink(missing_ok=True)

    def _line(self, deadline):
        while b"\n" not in self.buffer:
            self._receive(deadline)
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def _receive(self, deadline):
        self.stream.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            chunk = self.stream.recv(1 << 16)
        except TimeoutError as error:
            self._note(f"[no answer in time; said so far: {self.buffer[-4000:].decode(errors='replace')}]")
            raise Lost("the shell does not answer in time") from error
        except OSError as error:
            raise Lost(f"the shell is gone: {error}") from error
        if not chunk:
            raise Lost("the machine shut down")
        self.buffer += chunk

    def _note(self, text):
        with open(self.transcript, "a") as file:
            file.write(text if text.endswith("\n") else text + "\n")
