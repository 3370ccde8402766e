"""Programs of the upstreams, for one architecture.

Real ones come from Debian packages; a stand-in takes the place of each that Debian does not have. Both are cached below
the folder given by the caller.
"""

import hashlib
import os
import pathlib
import subprocess

from harness.paths import BASE_IMAGE, ROOT

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = {"amd64": "x86_64-unknown-linux-musl", "arm64": "aarch64-unknown-linux-musl"}
# Debian 13 has containerd 1.7, which does not read the configuration of what its project publishes now.
SUITES = {"containerd": "sid"}
# Debian package of each real program, and its path there.
PACKAGES = {
    "containerd": ("containerd", "usr/bin/containerd"),
    "containerd-shim-runc-v2": ("containerd", "usr/bin/containerd-shim-runc-v2"),
    "ctr": ("containerd", "usr/bin/ctr"),
    "runc": ("runc", "usr/sbin/runc"),
    "kubectl": ("kubectl", "usr/bin/kubectl"),
}
PLUGINS = ("containernetworking-plugins", "usr/lib/cni")
# Build information by Go's linker: where it starts, and how the releases of Kubernetes say what they are.
BUILD_INFO = b"\xff Go buildinf:"
KUBERNETES = "path\tk8s.io/kubernetes/cmd/{name}\nmod\tk8s.io/kubernetes\tv{version}\t\nbuild\t-trimpath=true\nbuild\tGOARCH={arch}\n"


def string(text):
    """A string of the build information: its length in groups of seven bits, and its bytes."""
    length, groups = len(text), []
    while length > 0x7f:
        groups.append(length & 0x7f | 0x80)
        length >>= 7
    return bytes([*groups, length]) + text.encode()


def release(program, name, version, arch):
    """A program as Kubernetes releases it under that name and version: all that differs is what Go's linker noted in it."""
    mark = "=" * 16
    note = bytes([8, 2]) + bytes(16) + string("go1.24.9") + string(mark + KUBERNETES.format(name=name, version=version, arch=arch) + mark)
    at = next(at for at in range(0, len(program), 16) if program.startswith(BUILD_INFO, at)) + len(BUILD_INFO)
    return program[:at] + note + program[at + len(note):]


class Programs:
    def __init__(self, cache, arch):
        self.arch = arch
        self.cache = pathlib.Path(cache) / arch
        self.cache.mkdir(parents=True, exist_ok=True)
        self._unpack()
        self._compile()

    def real(self, name):
        package, path = PACKAGES[name]
        return (self._folder(package) / path).read_bytes()

    def plugins(self):
        package, path = PLUGINS
        folder = self._folder(package) / path
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}

    def standin(self, name, version):
        """The stand-in, with a note at its end that makes each artifact another file."""
        return self.program.read_bytes() + f"\nstand-in for {name} {version} {self.arch}\n".encode()

    def _unpack(self):
        packages = sorted({package for package, _ in PACKAGES.values()} | {PLUGINS[0]})
        missing = [package for package in packages if not self._folder(package).exists()]
        if not missing:
            return
        debs = self.cache / "debs"
        debs.mkdir(exist_ok=True)
        for suite in sorted({SUITES.get(package, "trixie") for package in missing}):
            conf = subprocess.run([BASE_IMAGE / "apt-root.sh", self.cache / f"apt-{suite}", self.arch, suite], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.strip()
            wanted = [package for package in missing if SUITES.get(package, "trixie") == suite]
            environment = {**os.environ, "APT_CONFIG": conf}
            subprocess.run(["apt-get", "-qq", "download", *wanted], env=environment, cwd=debs, check=True)
        for package in missing:
            deb = max(debs.glob(f"{package}_*.deb"), key=os.path.getmtime)
            partial = self.cache / f".{package}"
            subprocess.run(["dpkg-deb", "-x", deb, partial], check=True)
            partial.rename(self._folder(package))

    def _folder(self, package):
        return self.cache / f"{package}-{SUITES.get(package, 'trixie')}"

    def _compile(self):
        source = HERE / "standin.rs"
        # Other checkouts may have another source.
        self.program = self.cache / f"standin-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
        if self.program.exists():
            return
        partial = self.program.with_name(f".standin-{os.getpid()}")
        target = TARGETS[self.arch]
        flags = os.environ.get(f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUSTFLAGS", "").split()
        subprocess.run(["rustc", "--edition=2024", f"--target={target}", "-Clinker=rust-lld", "-Copt-level=s", "-Cpanic=abort",
                        "-Cstrip=symbols", *flags, "-o", partial, source], check=True, cwd=ROOT)
        partial.rename(self.program)
