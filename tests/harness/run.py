"""Runs programs and captures their output."""

import os
import subprocess
import time

ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
PATIENCE = 60  # seconds until a server counts as one that does not start
# As another user, for tests that run as root.
OTHER_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []


def run(*command, **options):
    """The finished process, with both outputs as text."""
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True, **options}
    return subprocess.run([str(word) for word in command], check=False, **options)


def must(*command, **options):
    """Output of a program that must succeed."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def held(condition, patience, pause):
    """Whether a condition held before patience ran out."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def until(condition, patience=PATIENCE):
    assert held(condition, patience, 0.005), condition


class Programs:
    """Programs that run in one folder, which is also their home."""

    def __init__(self, folder, **environment):
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TUF_ROOT": str(folder), "LC_ALL": "C.UTF-8", **environment}

    def run(self, *command, folder=".", **options):
        return run(*command, cwd=self.folder / folder, env=self.environment, **options)

    def must(self, *command, folder=".", **options):
        return must(*command, cwd=self.folder / folder, env=self.environment, **options)
