"""The script of docs/ci.md, from the bake to the machine images, run against Debian's registry and the stand-in for AWS on loopback, with credentials from the
identity of a job. Then once more: nothing is created twice. And with an unsigned image: nothing is published.
"""

import json
import re
import socket
import subprocess
import urllib.request

import pytest

from harness.paths import HARNESS, ROOT
from harness.registry import Registry
from harness.report import case
from harness.run import must, until

PAGE = ROOT / "docs/ci.md"
# More than the boot of the image takes under emulation.
PATIENCE = 1800
ROLE = "arn:aws:iam::123456789012:role/publish-images"
CHANGES = {"StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot", "RegisterImage", "CopyImage", "ModifyImageAttribute", "PutParameter", "CreateTags"}


def script():
    """The only shell script of the page."""
    (text,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", PAGE.read_text(), re.DOTALL)
    return text


class Lab:
    """A folder, a registry and a stand-in."""

    def __init__(self, work):
        self.work, self.registry = work, Registry(work / "registry")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.aws_port = free.getsockname()[1]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.aws = subprocess.Popen([HARNESS / "aws/standin.py", "--port", str(self.aws_port)], **quiet)
        until(self.listens)

    def listens(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.aws_port)) == 0

    def stop(self):
        self.registry.stop()
        self.aws.terminate()
        self.aws.wait()

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
        "REPOSITORY": f"{lab.registry.address}/images/node",
        "COPIES": "us-east-1,eu-west-1",
        "CUSTOMER": "210987654321",
        "AWS_REGION": "eu-central-1",
        "AWS_ROLE_ARN": ROLE,
        "AWS_ROLE_SESSION_NAME": "job",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{lab.aws_port}",
    }


@pytest.fixture
def lab(work):
    lab = Lab(work)
    yield lab
    lab.stop()


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.needs("docker-registry")
def test_recipe(vmbake, manifest, base, store, lab):
    work = lab.work
    env = settings(lab, vmbake, manifest, base, store)
    must(vmbake, "key", "generate", cwd=work)
    env["RELEASE_KEY"] = (work / "release.key").read_text()
    (work / "release").write_text(script())

    def release():
        return subprocess.run(["sh", "release"], cwd=work, env=env, timeout=PATIENCE, capture_output=True, text=True)

    first = release()
    assert first.returncode == 0, first.stderr[-3000:]
    published = json.loads((work / "published.json").read_text())
    case("there is a copy in each region", sorted(published["copies"]) == ["eu-west-1", "us-east-1"])
    state = lab.ask("state")
    image = state["images"][published["image_id"]]
    case("the machine image has its name and boot mode", image["tags"]["Name"] == "node-1.0.0" and image["fields"]["BootMode"] == "uefi-preferred")
    case("the customer may start it", {"UserId": "210987654321"} in image["permissions"])
    log = state["log"]
    case("the parameters are set last", log.index("PutParameter") > max(log.index("CopyImage"), log.index("ModifyImageAttribute")))

    lab.ask("counts", {})
    second = release()
    again = json.loads((work / "published.json").read_text())
    counts = lab.ask("state")["counts"]
    made = {action: count for action, count in counts.items() if action in CHANGES}
    case("the script runs again and finds what is there", second.returncode == 0 and again["reused"] and again["image_id"] == published["image_id"])
    case(f"and changes nothing at AWS {made or ''}", not made)
    case("and bakes nothing", "unchanged" in second.stderr)

    for signature in (work / "dist").glob("*.sigstore.json"):
        signature.unlink()
    lines = script().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith("vmbake publish"))
    (work / "release").write_text("".join(lines[:3] + lines[at:]).replace("$KIND-$VERSION", "$KIND-unsigned"))
    lab.ask("counts", {})
    unsigned = release()
    counts = lab.ask("state")["counts"]
    case("an unsigned image is not published, without requests to AWS", unsigned.returncode == 1 and "does not meet the requirements" in unsigned.stderr and not counts)
