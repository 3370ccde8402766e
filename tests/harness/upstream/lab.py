"""The release sites on loopback, and vmbake run against them."""

import os
import pathlib
import subprocess

from harness.upstream.sites import Sites

HERE = pathlib.Path(__file__).resolve().parent


class Lab(Sites):
    """The sites, a server for them, and vmbake run against it."""

    def __init__(self, vmbake, root):
        self.vmbake = pathlib.Path(vmbake).resolve()
        subprocess.run([HERE / "build.py", root], check=True)
        super().__init__(root)
        self.environment = {**os.environ, "VMBAKE_MIRRORS": self.mirrors}
        self.versions = {}

    def command(self, *arguments):
        """Runs vmbake with the keys of the sites, unless the arguments specify others."""
        trusting = arguments[0] in ("update", "fetch", "bake", "manifest") and "--trust" not in arguments
        return [self.vmbake, *map(str, arguments), *(["--no-builtin=trust", "--trust", self.root / "trust"] if trusting else [])]

    def run(self, *arguments, **variables):
        result = subprocess.run(self.command(*arguments), env={**self.environment, **variables}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        return result.returncode, result.stdout

    def update(self, manifests, store, *more, trust="trust"):
        return self.run("update", "--no-builtin=trust", "--trust", self.root / trust, "--manifests", manifests, "--store", store, *more)

    def requests(self):
        """The requests since the last call: (method, path, first byte, status)."""
        log = self.root / "requests.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.split(" ") for line in lines]

    def swap(self, name):
        return {"kind": "swap", "file": str(self.root / "attacks" / name)}
