"""A baked image as a running machine without a VM: its own systemd below systemd-nspawn, on a writable layer in memory.

The input is a raw image. The network of the machine is a namespace created here, with an address, a default route and listeners that
record connections. Needs root, for mounts and namespaces.
"""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading

from harness.asks import PATIENCE, Asks
from harness.run import held

ADDRESS, ADDRESS6 = "10.9.8.7", "fd00:9::7"
CLONE_NEWNET = 0x40000000

# Of no interest here, and each costs a boot some tenths of a second. sshd has no keys without cloud-init; what
# systemd-sysctl does, the first-boot program does again.
MASKED = ["apparmor.service", "apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service", "dpkg-db-backup.timer",
          "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "grub-common.service", "ssh.service",
          "systemd-sysctl.service", "systemd-timesyncd.service", "unattended-upgrades.service"]


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


class Network:
    """A network namespace with one link that leads nowhere."""

    def __init__(self, name):
        self.name, self.path = name, f"/run/netns/{name}"
        self.sockets, self.connected = [], []
        run("ip", "netns", "add", name)
        # Two ends of one cable: kernels without the module `dummy` have this.
        for command in ("link set lo up", "link add uplink type veth peer name other", "link set other up", "link set uplink up",
                        f"address add {ADDRESS}/24 dev uplink", f"address add {ADDRESS6}/64 dev uplink nodad",
                        "route add default via 10.9.8.1", "route add default via fd00:9::1"):
            run("ip", "-n", name, *command.split())

    def listen(self, *ports):
        """Takes connections to these ports. A socket stays in the namespace in which it was made: a thread goes there."""
        failed = []

        def inside():
            try:
                handle = os.open(self.path, os.O_RDONLY)
                if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
                os.close(handle)
                self.sockets += [socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) for port in ports]
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        for server in self.sockets:
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def _accept(self, server):
        port = server.getsockname()[1]
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            self.connected.append(port)
            connection.close()

    def deaf(self):
        """Stops listening."""
        for server in self.sockets:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
        self.sockets = []

    def close(self):
        self.deaf()
        run("ip", "netns", "delete", self.name)


class Machine(Asks):
    """One machine of an image. `root` is its root file system, before the boot and while it runs."""

    def __init__(self, image, folder, name):
        self.folder, self.name, self.leader = pathlib.Path(folder) / name, f"vmbake-{name}-{os.getpid()}", None
        self.root, self.log = self.folder / "top/root", self.folder / "console.log"
        self.boots = 0
        for path in ("image", "top"):
            (self.folder / path).mkdir(parents=True)
        first = subprocess.check_output(["sgdisk", "-i", "1", image], text=True)
        offset = int(re.search(r"First sector: (\d+)", first).group(1)) * 512
        self.network, self.cgroup = None, None
        try:
            run("mount", "-o", f"ro,noload,loop,offset={offset}", image, self.folder / "image")
            run("mount", "-t", "tmpfs", "tmpfs", self.folder / "top")
            for path in ("upper", "work", "root"):
                (self.folder / "top" / path).mkdir()
            layers = f"lowerdir={self.folder}/image,upperdir={self.folder}/top/upper,workdir={self.folder}/top/work"
            run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
            (self.root / "etc/fstab").write_text("")
            for unit in MASKED:
                (self.root / "etc/systemd/system" / unit).symlink_to("/dev/null")
            self.network = Network(self.name)
            hierarchy = subprocess.check_output(["findmnt", "-nfo", "TARGET", "-t", "cgroup2"], text=True).strip()
            self.cgroup = pathlib.Path(hierarchy) / self.name
            self.cgroup.mkdir()
        except BaseException:
            self.close()
            raise

    def boot(self):
        """Starts the machine; returns once its systemd says that it is up."""
        self.boots += 1
        notify = self.folder / f"notify-{self.boots}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(notify))
            ready.settimeout(PATIENCE)
            command = ["systemd-nspawn", "--quiet", "--boot", f"--directory={self.root}", f"--machine={self.name}", "--register=no",
                       "--keep-unit", f"--network-namespace-path={self.network.path}", "--console=read-only", "--notify-ready=yes",
                       "--kill-signal=SIGRTMIN+4"]
            # Of /proc/sys, what belongs to the namespace of the network is the machine's to change.
            environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",
                           "NOTIFY_SOCKET": str(notify)}
            # A separate cgroup, which a shell enters before it executes nspawn.
            shell = 'echo $$ >"$0" && exec "$@"'
            self.nspawn = subprocess.Popen(["sh", "-c", shell, self.cgroup / "cgroup.procs", *command], env=environment,
                                           stdin=subprocess.DEVNULL, stdout=self.log.open("a"), stderr=subprocess.STDOUT)
            said = ""
            while "\nREADY=1" not in said:
                said += "\n" + ready.recv(4096).decode()
        self.leader = re.search(r"X_NSPAWN_LEADER_PID=(\d+)", said).group(1)
        self.settled()

    def stop(self):
        """An orderly shutdown."""
        if self.leader is not None:
            self.leader = None
            self.nspawn.send_signal(signal.SIGTERM)
            self.nspawn.wait(timeout=PATIENCE)

    def reboot(self):
        self.stop()
        self.boot()

    def close(self):
        if self.leader is not None:
            self.leader = None
            self.nspawn.kill()
            self.nspawn.wait()
        if self.network is not None:
            self.network.close()
        if self.cgroup is not None and self.cgroup.exists():
            (self.cgroup / "cgroup.kill").write_text("1")
            self.until(lambda: "populated 0" in (self.cgroup / "cgroup.events").read_text())
            # On hosts with both hierarchies nspawn makes it in that of systemd too.
            for hierarchy in (self.cgroup, pathlib.Path("/sys/fs/cgroup/systemd") / self.name):
                for folder, _, _ in os.walk(hierarchy, topdown=False):
                    os.rmdir(folder)
        for path in (self.root, self.folder / "top", self.folder / "image"):
            if os.path.ismount(path):
                run("umount", path)
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, *command):
        """Runs a program in the machine; returns its exit code and all that it said."""
        enter = ["nsenter", "--target", self.leader, "--all", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]
        result = subprocess.run([*enter, *map(str, command)], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        return result.returncode, result.stdout

    def put(self, path, content, mode=0o644, owner="root:root"):
        """Creates or rewrites a file; the owner is given by names of the machine."""
        path = self.root / path.lstrip("/")
        path.write_bytes(content)
        path.chmod(mode)
        os.chown(path, *(self._number(base, name) for base, name in zip(("passwd", "group"), owner.split(":"))))

    def get(self, path):
        """The content of a file, or None."""
        path = self.root / path.lstrip("/")
        return path.read_bytes() if path.is_file() else None

    def _number(self, base, name):
        return next(int(line.split(":")[2]) for line in (self.root / "etc" / base).read_text().splitlines() if line.startswith(f"{name}:"))

    def console(self):
        """Console output of the machine, without colors."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.log.read_text(errors="replace"))

    def until(self, holds, patience=PATIENCE):
        """Whether it held before patience ran out. It is a state of another systemd, which is not visible outside."""
        return held(holds, patience, 0.05)
