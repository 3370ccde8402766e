#!/usr/bin/env python3
"""recipe.py VMBAKE MANIFEST BASE STORE: runs the script of docs/ci.md, from the bake to the machine images, against Debian's registry and the stand-in for AWS
on loopback, with credentials from the identity of a job. Then once more: nothing is created twice. And with an unsigned image: nothing is published.
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from harness.paths import HARNESS, ROOT

PAGE = ROOT / "docs/ci.md"
# More than the boot of the image takes under emulation.
PATIENCE = 1800
ROLE = "arn:aws:iam::123456789012:role/publish-images"
CHANGES = {"StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot", "RegisterImage", "CopyImage", "ModifyImageAttribute", "PutParameter", "CreateTags"}


def script():
    """The only shell script of the page."""
    (text,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", PAGE.read_text(), re.DOTALL)
    return text


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until_there(number):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", number)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens at port {number}")


class Lab:
    """A folder, a registry and a stand-in."""

    def __init__(self, work):
        self.work, self.registry_port, self.aws_port = work, port(), port()
        config = {"version": "0.1", "storage": {"filesystem": {"rootdirectory": str(work / "registry")}}, "http": {"addr": f"127.0.0.1:{self.registry_port}"}}
        (work / "registry.yml").write_text(json.dumps(config))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes = [
            subprocess.Popen(["docker-registry", "serve", work / "registry.yml"], **quiet),
            subprocess.Popen([HARNESS / "aws/standin.py", "--port", str(self.aws_port)], **quiet),
        ]
        until_there(self.registry_port)
        until_there(self.aws_port)

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()

    def ask(self, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.aws_port}/_standin/{path}", data, timeout=60) as answer:
            return json.load(answer)


def settings(lab, vmbake, manifest, base, store):
    """The environment of a job. The manifest, the base and the store are those of the tests, which the lines of the page do not name."""
    bin_folder = lab.work / "bin"
    bin_folder.mkdir()
    wrapper = f"""#!/bin/sh
case $1 in
fetch) shift; exec {vmbake} fetch "$@" --manifest {manifest} --store {store} ;;
bake) shift; exec {vmbake} bake "$@" --manifest {manifest} --store {store} --base {base} ;;
verify | publish) exec {vmbake} "$@" --store {store} ;;
*) exec {vmbake} "$@" ;;
esac
"""
    (bin_folder / "vmbake").write_text(wrapper)
    (bin_folder / "vmbake").chmod(0o755)
    token = lab.work / "token"
    token.write_text("a token of the job")
    return {
        "PATH": f"{bin_folder}:/usr/bin:/bin:/usr/sbin",
        "HOME": str(lab.work),
        "KIND": "node",
        "VERSION": "1.0.0",
        "BUILDER": "https://example.org/builder",
        "REPOSITORY": f"127.0.0.1:{lab.registry_port}/images/node",
        "COPIES": "us-east-1,eu-west-1",
        "CUSTOMER": "210987654321",
        "AWS_REGION": "eu-central-1",
        "AWS_ROLE_ARN": ROLE,
        "AWS_ROLE_SESSION_NAME": "job",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{lab.aws_port}",
    }


def main(vmbake, manifest, base, store):
    vmbake, manifest, base, store = (pathlib.Path(path).resolve() for path in (vmbake, manifest, base, store))
    failed = []

    def check(holds, text):
        print(("ok   " if holds else "FAIL ") + text, flush=True)
        if not holds:
            failed.append(text)

    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        lab = Lab(work)
        try:
            env = settings(lab, vmbake, manifest, base, store)
            subprocess.run([vmbake, "key", "generate"], cwd=work, check=True, stdout=subprocess.DEVNULL)
            env["RELEASE_KEY"] = (work / "release.key").read_text()
            (work / "release").write_text(script())

            def release():
                return subprocess.run(["sh", "release"], cwd=work, env=env, timeout=PATIENCE, capture_output=True, text=True)

            first = release()
            check(first.returncode == 0, "the script of the page bakes, boots, signs, pushes and publishes")
            if first.returncode:
                sys.exit(first.stderr[-3000:])
            published = json.loads((work / "published.json").read_text())
            check(sorted(published["copies"]) == ["eu-west-1", "us-east-1"], "there is a copy in each region")
            state = lab.ask("state")
            image = state["images"][published["image_id"]]
            check(image["tags"]["Name"] == "node-1.0.0" and image["fields"]["BootMode"] == "uefi-preferred", "the machine image has its name and boot mode")
            check({"UserId": "210987654321"} in image["permissions"], "the customer may start it")
            log = state["log"]
            check(log.index("PutParameter") > max(log.index("CopyImage"), log.index("ModifyImageAttribute")), "the parameters are set last")

            lab.ask("counts", {})
            second = release()
            again = json.loads((work / "published.json").read_text())
            counts = lab.ask("state")["counts"]
            made = {action: count for action, count in counts.items() if action in CHANGES}
            check(second.returncode == 0 and again["reused"] and again["image_id"] == published["image_id"], "the script runs again and finds what is there")
            check(not made, f"and changes nothing at AWS {made or ''}")
            check("unchanged" in second.stderr, "and bakes nothing")

            for signature in (work / "dist").glob("*.sigstore.json"):
                signature.unlink()
            lines = script().splitlines(keepends=True)
            at = next(number for number, line in enumerate(lines) if line.startswith("vmbake publish"))
            (work / "release").write_text("".join(lines[:3] + lines[at:]).replace("$KIND-$VERSION", "$KIND-unsigned"))
            lab.ask("counts", {})
            unsigned = release()
            counts = lab.ask("state")["counts"]
            check(unsigned.returncode == 1 and "does not meet the requirements" in unsigned.stderr and not counts, "an unsigned image is not published, without requests to AWS")
        finally:
            lab.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: recipe.py VMBAKE MANIFEST BASE STORE")
    if not shutil.which("docker-registry"):
        sys.exit("docker-registry is not installed")
    main(*sys.argv[1:])
