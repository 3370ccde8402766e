"""boto3 with the stand-in: a client for each service, and the error of a refused call."""

import base64
import hashlib
import json
import pathlib
import subprocess
import time
import urllib.request

from harness.report import case

HERE = pathlib.Path(__file__).resolve().parent
ACCOUNT, BLOCK = "123456789012", 524288
REGION = "eu-central-1"


class Standin:
    """A separate stand-in, until `close`."""

    def __init__(self):
        self.process = subprocess.Popen([HERE / "standin.py"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().strip()
        if not line.startswith("url="):
            raise RuntimeError("The stand-in did not start.")
        self.url, self.clients = line.removeprefix("url="), {}

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)

    def control(self, what, **body):
        request = urllib.request.Request(f"{self.url}/_standin/{what}", data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def state(self):
        """All snapshots and images, as stored."""
        with urllib.request.urlopen(f"{self.url}/_standin/state", timeout=20) as answer:
            found = json.load(answer)
        return found["snapshots"], found["images"]

    def knobs(self, **values):
        """Sets these knobs, and resets all others."""
        self.control("calm")
        self.control("knobs", **values)

    def client(self, service, region=REGION, key=None, validate=False):
        """A client without retries. `key` is a result of `control("keys")`."""
        import boto3
        from botocore.config import Config
        known = key["AccessKeyId"] + key["SecretAccessKey"] + str(key.get("Token")) if key else ""
        if (service, region, known) not in self.clients:
            given = key or {"AccessKeyId": "AKIACROSSCHECK000000", "SecretAccessKey": "any"}
            config = Config(retries={"total_max_attempts": 1}, parameter_validation=validate, connect_timeout=5, read_timeout=15)
            self.clients[service, region, known] = boto3.client(
                service, region_name=region, endpoint_url=self.url, config=config, aws_access_key_id=given["AccessKeyId"],
                aws_secret_access_key=given["SecretAccessKey"], aws_session_token=given.get("Token"))
        return self.clients[service, region, known]

    # Common helpers.

    def start(self, size=1, **asked):
        return self.client("ebs").start_snapshot(VolumeSize=size, **asked)

    def put(self, snapshot, index, content, **other):
        asked = {"DataLength": BLOCK, "ChecksumAlgorithm": "SHA256", "Checksum": checksum(content)} | other
        return self.client("ebs").put_snapshot_block(SnapshotId=snapshot, BlockIndex=index, BlockData=content, **asked)

    def complete(self, snapshot, count, **asked):
        return self.client("ebs").complete_snapshot(SnapshotId=snapshot, ChangedBlocksCount=count, **asked)

    def made(self, blocks, size=1, **asked):
        """The name of a completed snapshot with those blocks, {index: content}."""
        name = self.start(size, **asked)["SnapshotId"]
        for index, content in blocks.items():
            self.put(name, index, content)
        self.complete(name, len(blocks))
        return name

    def indexes(self, name, **asked):
        """All blocks of a paginated list, {index: token}."""
        found = {}
        for page in self.pages(name, **asked):
            found |= {one["BlockIndex"]: one["BlockToken"] for one in page["Blocks"]}
        return found

    def pages(self, name, **asked):
        while True:
            page = self.client("ebs").list_snapshot_blocks(SnapshotId=name, **asked)
            yield page
            if not page.get("NextToken"):
                return
            asked["NextToken"] = page["NextToken"]

    def read(self, name, index, token):
        return self.client("ebs").get_snapshot_block(SnapshotId=name, BlockIndex=index, BlockToken=token)["BlockData"].read()

    def raw(self, name, blocks):
        """The first blocks of the volume of a snapshot."""
        with urllib.request.urlopen(f"{self.url}/_standin/snapshots/{name}/raw", timeout=20) as answer:
            return answer.read(blocks * BLOCK)

    def image(self, name, snapshot, region=REGION, **other):
        asked = {
            "Name": name, "Architecture": "x86_64", "VirtualizationType": "hvm", "EnaSupport": True, "RootDeviceName": "/dev/xvda",
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot, "VolumeType": "gp3"}}],
        }
        return self.client("ec2", region).register_image(**asked | other)["ImageId"]


def content(seed):
    """A unique block."""
    return hashlib.sha256(str(seed).encode()).digest() * (BLOCK // 32)


def checksum(*parts):
    return base64.b64encode(hashlib.sha256(b"".join(parts)).digest()).decode()


def linear(blocks):
    """The LINEAR checksum of {index: content}."""
    return checksum(*(hashlib.sha256(blocks[index]).digest() for index in sorted(blocks)))


def refused(name, wanted, call, /, **asked):
    """A case: the call is refused with (status, code) or (status, code, reason)."""
    from botocore.exceptions import ClientError
    try:
        found = ("none", str(call(**asked))[:300])
        message = ""
    except ClientError as error:
        answer = error.response
        found = (answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer.get("Reason"))[:len(wanted)]
        message = answer["Error"].get("Message", "")
    case(name, found == wanted, f"wanted {wanted}, found {found}: {message}")
    return message


def until(condition, seconds=5):
    """Whether something holds within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
