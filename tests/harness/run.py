"""Runs programs and captures their output."""

import os
import subprocess

ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def run(*command, **options):
    """The finished process, with both outputs as text."""
    options = {"env": ENVIRONMENT, "capture_output": True, "text": True, **options}
    return subprocess.run([str(word) for word in command], check=False, **options)


def must(*command, **options):
    """Output of a program that must succeed."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
