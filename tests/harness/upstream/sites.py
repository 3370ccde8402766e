"""A server of release sites, whose files are below ROOT/site/HOST: serve.py."""

import json
import pathlib
import subprocess

from harness.run import until

SERVE = pathlib.Path(__file__).resolve().with_name("serve.py")


class Sites:
    """Serves until it is closed, or until the process that started it ends."""

    def __init__(self, root):
        self.root, listed = root, root / "mirrors"
        self.server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", SERVE, root, "--mirrors", listed])
        until(lambda: listed.exists() or self.server.poll() is not None)
        assert self.server.poll() is None, "the server of the release sites does not start"
        self.mirrors = listed.read_text()
        self.options = [word for mirror in self.mirrors.split() for word in ("--mirror", mirror)]

    def fault(self, faults):
        """Has the sites cheat: {/HOST/PATH: fault}."""
        partial = self.root / "faults.partial"
        partial.write_text(json.dumps(faults))
        partial.rename(self.root / "faults.json")

    def close(self):
        self.server.kill()
        self.server.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
