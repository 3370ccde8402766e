#!/usr/bin/python3
"""The modules that the stand-in for AWS and its judges need: moto, boto3 and what these need for EC2, EBS, SSM, STS and IAM, pinned with their digests.

`modules.py` installs them into target/aws-modules and says where that is. Another script imports this one first: `modules.find()` puts them in its path,
or tells why they are not to be had. Both architectures and the Pythons of Debian 12 and 13 are pinned.
"""

import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
FOLDER = HERE.parents[1] / "target/aws-modules"
# What moto reads when it is imported.
SETTINGS = {
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
}


def install():
    """Installs the modules unless these very ones are there. Gives what pip said if that failed."""
    stamp = FOLDER / "installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    pip = ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps"]
    pip += ["--only-binary=:all:", "--require-hashes", "--upgrade", "--target", FOLDER, "--requirement", REQUIREMENTS]
    done = subprocess.run([str(word) for word in pip], capture_output=True, text=True)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    stamp.write_text(wanted)
    return None


def find():
    """Has `import moto` and `import boto3` work, and gives why they do not."""
    problem = install()
    if problem is None:
        os.environ.update(SETTINGS)
        sys.path.insert(0, str(FOLDER))
    return problem


if __name__ == "__main__":
    failed = install()
    print(failed or FOLDER)
    sys.exit(1 if failed else 0)
