"""Common parts of the tests of `vmbake publish aws`: a stand-in for AWS, the program, and a snapshot that boto3 reads back.

boto3 does not use the proxy, and is independent of the program.
"""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import boto3
import botocore.config

from harness.aws import disk, faults

HERE = pathlib.Path(__file__).resolve().parent
REGION, OTHERS = "eu-central-1", ("us-east-1", "us-west-2")
BLOCK = disk.BLOCK
TIMEOUT = 240
# Requests that change something.
CHANGING = {
    "StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot", "RegisterImage", "CopyImage", "CreateTags", "DeleteTags", "ModifyImageAttribute",
    "ModifySnapshotAttribute", "EnableImageDeprecation", "PutParameter", "DeregisterImage", "DeleteSnapshot",
}
OPEN = botocore.config.Config(retries={"total_max_attempts": 4}, parameter_validation=True)


class Service:
    """A stand-in, with a proxy before it."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, HERE / "standin.py"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().partition("=")[2]
        self.proxy = faults.Proxy(self.url).start()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)

    def control(self, what, value=None):
        request = urllib.request.Request(f"{self.url}/_standin/{what}", data=None if value is None else json.dumps(value).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def reset(self):
        self.control("reset", {})
        self.proxy.plan()

    def knobs(self, **changes):
        self.control("knobs", changes)

    def calm(self):
        """Nothing goes wrong any more."""
        self.control("calm", {})
        self.proxy.plan()
        for name in self.state()["snapshots"]:
            self.control("snapshot", {"id": name, "unseen": 0})

    def state(self):
        return self.control("state")

    def changes(self):
        """Numbers of modifying requests since the last call."""
        counts = self.state()["counts"]
        self.control("counts", {})
        return {name: count for name, count in counts.items() if name in CHANGING}

    def key(self, **what):
        """A new access key, as boto3 and the program take it."""
        made = self.control("keys", what)
        return {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]} | ({"AWS_SESSION_TOKEN": made["Token"]} if made["Token"] else {})

    def client(self, name, region=REGION, key=None):
        key = key or {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        names = {"AWS_ACCESS_KEY_ID": "aws_access_key_id", "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key", "AWS_SESSION_TOKEN": "aws_session_token"}
        return boto3.client(name, region_name=region, endpoint_url=self.url, config=OPEN, **{names[one]: value for one, value in key.items()})

    def blocks(self, snapshot, region=REGION):
        """The blocks of a snapshot, as boto3 reads them: number -> bytes."""
        ebs, found, page = self.client("ebs", region), {}, {}
        while True:
            listed = ebs.list_snapshot_blocks(SnapshotId=snapshot, MaxResults=1000, **page)
            for block in listed["Blocks"]:
                got = ebs.get_snapshot_block(SnapshotId=snapshot, BlockIndex=block["BlockIndex"], BlockToken=block["BlockToken"])
                content = got["BlockData"].read()
                if base64.b64encode(hashlib.sha256(content).digest()).decode() != got["Checksum"]:
                    raise RuntimeError(f"{snapshot}: block {block['BlockIndex']} has another checksum")
                found[block["BlockIndex"]] = content
            if not listed.get("NextToken"):
                return found
            page = {"NextToken": listed["NextToken"]}

    def images(self, region=REGION):
        return {name: one for name, one in self.state()["images"].items() if one["region"] == region}

    def snapshots(self, region=REGION):
        return {name: one for name, one in self.state()["snapshots"].items() if one["region"] == region}


def content(path):
    """The blocks of an image that are not all zeros."""
    found = {}
    with open(path, "rb") as file:
        for at in disk.data(file.fileno()):
            file.seek(at)
            block = file.read(BLOCK)
            if block.strip(b"\0"):
                found[at // BLOCK] = block
    return found


def differ(blocks, image):
    """The first few blocks of a snapshot that are not those of an image; absent ones are zeros."""
    expected, zeros = content(image), bytes(BLOCK)
    return [index for index in sorted(blocks.keys() | expected.keys()) if blocks.get(index, zeros) != expected.get(index, zeros)][:9]


def assemble(blocks, path):
    """A volume of a snapshot as an encrypted one may read: whatever was not sent is noise."""
    noise = disk.noise("encrypted", BLOCK)
    with open(path, "wb") as file:
        for index in range(disk.SIZE // BLOCK):
            file.write(blocks.get(index, noise))


def tools(path, work):
    """Errors of e2fsck, fsck.vfat and sgdisk for a disk."""
    esp = work / "esp"
    with open(path, "rb") as file:
        file.seek(disk.PARTS[15][0] * disk.MIB)
        esp.write_bytes(file.read(disk.PARTS[15][1] * disk.MIB))
    said = {}
    for command in ["e2fsck", "-fn", f"{path}?offset={disk.PARTS[1][0] * disk.MIB}"], ["fsck.vfat", "-n", esp], ["sgdisk", "--verify", path]:
        done = subprocess.run([str(word) for word in command], env=disk.ENV, capture_output=True, text=True, timeout=60)
        good = done.returncode == 0 and (command[0] != "sgdisk" or "No problems found" in done.stdout)
        if not good:
            said[command[0]] = done.stdout[-600:] + done.stderr[-300:]
    return said


def wait_for_next_second():
    """EC2's creation times are in seconds."""
    time.sleep(1.05 - time.time() % 1)


class Done:
    """A run of the program that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.json = {}
        with contextlib.suppress(ValueError):
            self.json = json.loads(out)

    def __repr__(self):
        return f"exit {self.code}\n{self.out[-1500:]}\n{self.err[-1500:]}"


class Program:
    """vmbake with a separate store and test credentials."""

    def __init__(self, vmbake, service, work):
        self.vmbake, self.service, self.work, self.stores = vmbake, service, work, 0

    def store(self):
        """A store that nothing is in."""
        self.stores += 1
        return self.work / f"store-{self.stores}"

    def begin(self, *arguments, store, key=None, environment=None):
        """Starts `vmbake publish aws`."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "VMBAKE_", "XDG_"))}
        own |= {"HOME": str(self.work), "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": REGION}
        own |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} if key is None else key
        command = [self.vmbake, "publish", "aws", *arguments, "--endpoint-url", self.service.proxy.url, "--store", store, "--json"]
        return subprocess.Popen([str(word) for word in command], env=own | (environment or {}), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments, store=None, timeout=TIMEOUT, **how):
        """Runs `vmbake publish aws`, in an empty store unless one is given."""
        return ended(self.begin(*arguments, store=store or self.store(), **how), timeout)


def ended(process, timeout=TIMEOUT):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += f"\nkilled after {timeout} s"
    return Done(process.returncode, out, err)
