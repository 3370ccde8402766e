"""EBS direct APIs as documented by AWS, on the blocks of a World. Requests consist of method, path, query, headers and body.

https://docs.aws.amazon.com/ebs/latest/APIReference/ and "Encryption outcomes for EBS direct APIs". Undocumented cases are handled strictly:
a second CompleteSnapshot, and a put to a snapshot that is completed, are errors.
"""

import base64
import hashlib
import hmac
import json
import re
import time

from harness.aws.world import BLOCK, Refused, Snapshot

ROUTES = [
    ("POST", re.compile(r"/snapshots/completion/([^/]+)"), "CompleteSnapshot"),
    ("GET", re.compile(r"/snapshots/([^/]+)/blocks/([^/]+)"), "GetSnapshotBlock"),
    ("PUT", re.compile(r"/snapshots/([^/]+)/blocks/([^/]+)"), "PutSnapshotBlock"),
    ("GET", re.compile(r"/snapshots/([^/]+)/changedblocks"), "ListChangedBlocks"),
    ("GET", re.compile(r"/snapshots/([^/]+)/blocks"), "ListSnapshotBlocks"),
    ("POST", re.compile(r"/snapshots"), "StartSnapshot"),
]
JSON = "application/json"


def route(method, path):
    """The action of a request, and its subject from the path."""
    for verb, pattern, action in ROUTES:
        if verb == method and (found := pattern.fullmatch(path)):
            return action, found.groups()
    return None, ()


def invalid(message, reason="INVALID_PARAMETER_VALUE"):
    return Refused(400, "ValidationException", message, reason)


def not_found(name):
    return Refused(404, "ResourceNotFoundException", f"The snapshot '{name}' does not exist.", "SNAPSHOT_NOT_FOUND")


def integer(text, what, least, most):
    if not re.fullmatch(r"[0-9]{1,18}", text or "") or not least <= int(text) <= most:
        raise invalid(f"{what} must be from {least} to {most}: {text}")
    return int(text)


class Ebs:
    """The six actions. `kms(region, arn)` says whether a key is there; `default_key(region)` names that of EBS; `by_default(region)` is the setting."""

    def __init__(self, world, keys):
        self.world, self.keys = world, keys
        self.secret = hashlib.sha256(str(world.seed).encode()).digest()

    def serve(self, action, request):
        method = {
            "StartSnapshot": self.start, "PutSnapshotBlock": self.put, "CompleteSnapshot": self.complete, "GetSnapshotBlock": self.get,
            "ListSnapshotBlocks": self.list, "ListChangedBlocks": self.list_changed,
        }[action]
        return method(request)

    def found(self, request, name, states):
        """The snapshot of that name, in one of the states."""
        one = self.world.snapshots.get(name)
        if not re.fullmatch(r"snap-[0-9a-f]{1,59}", name):
            raise invalid(f"{name} is not a snapshot.", "INVALID_SNAPSHOT_ID")
        visible = one and one.region == request.region and (one.account == request.account or request.account in one.shared)
        if not visible or self.world.hidden(one):
            raise not_found(name)
        self.world.age(one)
        state = "sealed" if one.sealed and one.state == "pending" else one.state
        if state not in states:
            raise invalid(f"The snapshot '{name}' is {state}.", "INVALID_SNAPSHOT_ID")
        return one

    # Writing.

    def start(self, request):
        try:
            asked = json.loads(request.body)
        except ValueError:
            raise invalid("The body is not JSON.") from None
        check_start(asked)
        with self.world.lock:
            token = asked.get("ClientToken")
            known = self.world.keyed(request.account, request.region, "StartSnapshot", token, asked)
            if known is None:
                known = self.make(request, asked)
                self.world.remember(request.account, request.region, "StartSnapshot", token, asked, known)
            return 201, {"Content-Type": JSON}, json.dumps(started(self.world.snapshots[known])).encode()

    def make(self, request, asked):
        pending = [one for one in self.world.snapshots.values() if (one.account, one.region, one.state) == (request.account, request.region, "pending")]
        if len(pending) >= 100:
            raise Refused(400, "ConcurrentLimitExceededException", "You have reached the limit of pending snapshots.")
        parent, key = None, self.key_of(request, asked)
        if name := asked.get("ParentSnapshotId"):
            parent = self.parent(request, asked, name)
            key = parent.kms_key
        one = Snapshot(self.world, self.world.name("snap-"), request.account, request.region, asked)
        one.kms_key = key
        if parent:
            one.parent, one.blocks, one.lineage = parent.id, dict(parent.blocks), one.lineage | parent.lineage
        self.world.snapshots[one.id] = one
        return one.id

    def parent(self, request, asked, name):
        one = self.found(request, name, ("completed",))
        if one.account != request.account or one.tier == "archive" or "all" in one.shared:
            raise invalid(f"The snapshot '{name}' cannot be a parent.", "INVALID_SNAPSHOT_ID")
        if one.size > asked["VolumeSize"]:
            raise invalid("The volume is smaller than that of the parent.", "INVALID_VOLUME_SIZE")
        if "Encrypted" in asked or "KmsKeyArn" in asked:
            raise invalid("Encrypted and KmsKeyArn cannot be specified with ParentSnapshotId.")
        if self.keys.by_default(request) and not one.encrypted:
            raise invalid("Encryption by default is enabled, and the parent is not encrypted.")
        return one

    def key_of(self, request, asked):
        """The key of a snapshot without a parent."""
        encrypted, key, by_default = asked.get("Encrypted"), asked.get("KmsKeyArn"), self.keys.by_default(request)
        if "ParentSnapshotId" in asked:
            return None
        if encrypted is False and (by_default or key):
            raise invalid("Encrypted is false, and a key or encryption by default wants it.")
        if not (encrypted or by_default):
            if key:
                raise invalid("KmsKeyArn without Encrypted.")
            return None
        if key and not self.keys.there(request, key):
            raise invalid("The key does not exist or is not usable.", "INVALID_CUSTOMER_KEY")
        return key or self.keys.default(request)

    def put(self, request):
        name, index = request.subject
        headers = request.headers
        length, claimed = headers.get("x-amz-data-length"), headers.get("x-amz-checksum", "")
        if length != str(BLOCK) or len(request.body) != BLOCK:
            raise invalid(f"The length of a block is {BLOCK}: {length}, {len(request.body)} bytes came.", "INVALID_BLOCK")
        if headers.get("x-amz-checksum-algorithm") != "SHA256":
            raise invalid("The algorithm of checksums is SHA256.")
        if "x-amz-progress" in headers:
            integer(headers["x-amz-progress"], "Progress", 0, 100)
        if decoded(claimed) != request.digest:
            raise invalid("The checksum is not that of the block.", "INVALID_BLOCK")
        with self.world.lock:
            one = self.found(request, name, ("pending",))
            index = integer(index, "BlockIndex", 0, one.limit - 1)
        digest = request.digest
        if self.world.turn("wrong_store", self.world.knobs.wrong_store):
            other = bytes([request.body[0] ^ 1]) + request.body[1:]
            digest = hashlib.sha256(other).digest()
            self.world.keep(digest, other)
        else:
            self.world.keep(digest, request.body)
        with self.world.lock:
            one = self.found(request, name, ("pending",))
            one.blocks[index] = digest
            one.written.add(index)
            one.touched = time.monotonic()
        echoed = request.digest
        if self.world.turn("wrong_echo", self.world.knobs.wrong_echo):
            echoed = bytes([echoed[0] ^ 1]) + echoed[1:]
        return 201, {"x-amz-Checksum": base64.b64encode(echoed).decode(), "x-amz-Checksum-Algorithm": "SHA256"}, b""

    def complete(self, request):
        headers = request.headers
        count = integer(headers.get("x-amz-changedblockscount"), "ChangedBlocksCount", 0, 1 << 40)
        with self.world.lock:
            one = self.found(request, request.subject[0], ("pending",))
            if count != len(one.written):
                raise invalid(f"ChangedBlocksCount is {count}, and {len(one.written)} blocks were written.")
            if claimed := headers.get("x-amz-checksum"):
                if (headers.get("x-amz-checksum-algorithm"), headers.get("x-amz-checksum-aggregation-method")) != ("SHA256", "LINEAR"):
                    raise invalid("The checksum needs SHA256 and LINEAR.")
                linear = hashlib.sha256(b"".join(one.blocks[index] for index in sorted(one.written)))
                if decoded(claimed) != linear.digest():
                    raise invalid("The checksum is not that of the blocks.")
            one.sealed, one.left = True, self.world.knobs.pending_snapshot
            if not one.left:
                one.state = "completed"
            return 202, {"Content-Type": JSON}, json.dumps({"Status": one.state}).encode()

    # Reading.

    def get(self, request):
        name, index = request.subject
        with self.world.lock:
            one = self.found(request, name, ("completed",))
            index = integer(index, "BlockIndex", 0, one.limit - 1)
            self.opened(request.query.get("blockToken", ""), f"block {name} {index}", "INVALID_BLOCK_TOKEN")
            digest = one.blocks[index]
        headers = {"x-amz-Data-Length": str(BLOCK), "x-amz-Checksum": base64.b64encode(digest).decode(), "x-amz-Checksum-Algorithm": "SHA256"}
        return 200, headers | {"Content-Type": "application/octet-stream"}, self.world.block(digest)

    def list(self, request):
        with self.world.lock:
            one = self.found(request, request.subject[0], ("completed",))
            page, answer = self.page(request, sorted(one.blocks), f"list {one.id}")
            answer["Blocks"] = [{"BlockIndex": index, "BlockToken": self.block_token(one, index)} for index in page]
        return self.listed(answer, one)

    def list_changed(self, request):
        first = request.query.get("firstSnapshotId")
        if not first:
            raise invalid("FirstSnapshotId is missing.", "INVALID_SNAPSHOT_ID")
        with self.world.lock:
            first, second = (self.found(request, name, ("completed",)) for name in (first, request.subject[0]))
            page, answer = self.page(request, sorted(self.changed(first, second)), f"changed {first.id} {second.id}")
            answer["ChangedBlocks"] = [{"BlockIndex": index} | self.both_tokens(first, second, index) for index in page]
        return self.listed(answer, second)

    def changed(self, first, second):
        """The blocks that were written since the snapshot that both stem from."""
        shared = next((name for name in first.lineage if name in second.lineage), None)
        if shared is None:
            raise invalid("The snapshots are of different volumes.", "UNRELATED_SNAPSHOTS")
        changed = set()
        for one in first, second:
            for name, written in one.lineage.items():
                if name == shared:
                    break
                changed |= written
        return {index for index in changed if index in first.blocks or index in second.blocks}

    def both_tokens(self, first, second, index):
        named = (("FirstBlockToken", first), ("SecondBlockToken", second))
        return {key: self.block_token(one, index) for key, one in named if index in one.blocks}

    def listed(self, answer, one):
        answer |= {"VolumeSize": one.size, "BlockSize": BLOCK, "ExpiryTime": time.time() + self.world.knobs.block_token_seconds}
        return 200, {"Content-Type": JSON}, json.dumps(answer).encode()

    def page(self, request, indexes, what):
        """The blocks of one page, and where the next one begins."""
        most = min(integer(request.query.get("maxResults", "10000"), "MaxResults", 100, 10000), self.world.knobs.page)
        start, empty = 0, self.world.knobs.empty_pages
        if token := request.query.get("pageToken"):
            start, empty = self.opened(token, what, "INVALID_PAGE_TOKEN")
        elif "startingBlockIndex" in request.query:
            start = integer(request.query["startingBlockIndex"], "StartingBlockIndex", 0, 1 << 40)
        rest = [index for index in indexes if index >= start]
        page = [] if empty else rest[:most]
        answer = {}
        if len(page) < len(rest):
            begin = rest[len(page)]
            answer["NextToken"] = self.sealed(what, [begin, self.world.knobs.empty_pages and not empty], self.world.knobs.page_token_seconds)
        return page, answer

    # Tokens: purpose, contents and expiry, authenticated by the stand-in.

    def block_token(self, one, index):
        return self.sealed(f"block {one.id} {index}", None, self.world.knobs.block_token_seconds)

    def sealed(self, what, holds, seconds):
        content = json.dumps([round(time.time() + seconds, 3), holds]).encode()
        code = hmac.new(self.secret, what.encode() + content, "sha256").digest()[:9]
        return base64.b64encode(code + content).decode()

    def opened(self, token, what, reason):
        raw = decoded(token) or b""
        code, content = raw[:9], raw[9:]
        if not hmac.compare_digest(code, hmac.new(self.secret, what.encode() + content, "sha256").digest()[:9]):
            raise invalid("The token is not valid.", reason)
        until, holds = json.loads(content)
        if time.time() > until:
            raise invalid("The token has expired.", reason)
        return holds


def decoded(text):
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def check_start(asked):
    """Checks that do not depend on other snapshots."""
    size, tags = asked.get("VolumeSize"), asked.get("Tags", [])
    if not isinstance(size, int) or not 1 <= size <= 65536:
        raise invalid(f"VolumeSize must be from 1 to 65536: {size}", "INVALID_VOLUME_SIZE")
    if "ParentSnapshotId" in asked and "Encrypted" in asked:
        raise invalid("Encrypted and ParentSnapshotId cannot be specified together.")
    if "Timeout" in asked and not (isinstance(asked["Timeout"], int) and 10 <= asked["Timeout"] <= 4320):
        raise invalid("Timeout must be from 10 to 4320.")
    if not re.fullmatch(r"\S{1,255}", asked.get("ClientToken", "x")) or not 1 <= len(asked.get("Description", "x")) <= 255:
        raise invalid("ClientToken or Description is too long.")
    if len(tags) > 50 or any(not tag["Key"] or len(tag["Key"]) > 127 or len(tag["Value"]) > 255 or tag["Key"].startswith("aws:") for tag in tags):
        raise invalid("The tags are not valid.", "INVALID_TAG")


def started(one):
    """Response of StartSnapshot."""
    answer = {
        "SnapshotId": one.id, "OwnerId": one.account, "Status": one.state, "StartTime": one.date.timestamp(), "VolumeSize": one.size, "BlockSize": BLOCK,
        "SseType": "sse-kms" if one.encrypted else "none", "Tags": [{"Key": key, "Value": value} for key, value in one.tags.items()], "Description": one.description,
    }
    return answer | ({"ParentSnapshotId": one.parent} if one.parent else {}) | ({"KmsKeyArn": one.kms_key} if one.kms_key else {})
