"""State of the stand-in for AWS: snapshots with their blocks, machine images, and knobs that make it slow, forgetful or wrong.

A block is a file that is named by its SHA-256, in a folder; nothing of it stays in memory. All times are seconds of the monotonic clock, but for those
that a client sees. `World.lock` guards everything but the bytes of blocks.
"""

import collections
import datetime
import hashlib
import os
import threading
import time

BLOCK = 524288
ACCOUNT = "123456789012"
# In front of each name that AWS gives.
DIGITS = 17


class Refused(Exception):
    """A request that AWS would refuse: status, code and message as AWS has them, and for EBS the reason."""

    def __init__(self, status, code, message, reason=None):
        super().__init__(message)
        self.status, self.code, self.message, self.reason, self.after = status, code, message, reason, None


class Knobs:
    """Knobs of tests, by `POST /_standin/knobs`."""

    def __init__(self):
        # Whether signatures and policies are checked.
        self.auth = False
        # Requests per second for each action, such as {"PutSnapshotBlock": 50}.
        self.throttle = {}
        # Each n-th request of an action fails: {"PutSnapshotBlock": {"n": 5, "status": 500, "code": "InternalServerException"}}.
        self.every = {}
        # Number of requests, and seconds, for which a new snapshot or image is not visible.
        self.invisible = 0
        self.invisible_seconds = 0.0
        # How many times a completed snapshot, an image and a copy are described before they are ready.
        self.pending_snapshot = 0
        self.pending_image = 0
        # Unwritten blocks read as noise, as on an encrypted volume.
        self.noise = False
        # Each n-th put echoes another checksum, and stores the right block.
        self.wrong_echo = 0
        # Each n-th put stores another block than was sent, and echoes the right checksum.
        self.wrong_store = 0
        # Keys expire after that many requests. 0: never.
        self.expire_after = 0
        # How many seconds a minute of Timeout takes, and how many a page token and a block token live.
        self.minute = 60.0
        self.page_token_seconds = 3600.0
        self.block_token_seconds = 7 * 86400.0
        # Most blocks on a page, and whether each second page is empty.
        self.page = 10000
        self.empty_pages = False
        # Most images or snapshots on a page of EC2.
        self.describe_page = 1000
        # Seconds that each answer waits.
        self.latency = 0.0

    def turn(self, changes):
        for name, value in changes.items():
            if not hasattr(self, name):
                raise Refused(400, "UnknownKnob", name)
            setattr(self, name, value)


class Snapshot:
    """One snapshot. `blocks` is its whole view, `written` its blocks that are not from the parent."""

    def __init__(self, world, name, account, region, asked):
        self.id, self.account, self.region, self.asked = name, account, region, asked
        self.size, self.description = asked["VolumeSize"], asked.get("Description", "")
        self.tags = {tag["Key"]: tag["Value"] for tag in asked.get("Tags", [])}
        self.parent, self.blocks, self.written = None, {}, set()
        # The snapshot and its ancestors with their written blocks; outlives them.
        self.lineage = {name: self.written}
        self.kms_key, self.state, self.message = None, "pending", ""
        self.sealed, self.left, self.tier = False, 0, "standard"
        self.timeout = asked.get("Timeout", 60)
        self.started, self.touched, self.date = time.monotonic(), time.monotonic(), datetime.datetime.now(datetime.UTC)
        self.unseen = world.knobs.invisible
        self.shared = []

    @property
    def encrypted(self):
        return self.kms_key is not None

    @property
    def limit(self):
        """How many blocks there can be."""
        return self.size << 30 >> BLOCK.bit_length() - 1

    def arn(self):
        return f"arn:aws:ec2:{self.region}::snapshot/{self.id}"


class Image:
    """One machine image: parameters of RegisterImage, and later changes."""

    def __init__(self, world, name, account, region, fields, snapshots, tags):
        self.id, self.account, self.region = name, account, region
        self.fields, self.snapshots, self.tags = fields, snapshots, tags
        self.permissions, self.deprecation, self.reason = [], None, None
        self.state, self.left = "pending" if world.knobs.pending_image else "available", world.knobs.pending_image
        self.date, self.started = datetime.datetime.now(datetime.UTC), time.monotonic()
        self.unseen = world.knobs.invisible

    @property
    def public(self):
        return {"Group": "all"} in self.permissions

    def arn(self):
        return f"arn:aws:ec2:{self.region}::image/{self.id}"


class World:
    def __init__(self, folder, seed=1):
        self.lock, self.knobs, self.folder, self.seed = threading.RLock(), Knobs(), folder, seed
        self.snapshots, self.images = {}, {}
        # (account, region, action, token) -> (request, result)
        self.tokens = {}
        self.public_access = collections.defaultdict(lambda: "block-new-sharing")
        self.counts, self.refused, self.made = collections.Counter(), collections.Counter(), 0
        self.log, self.buckets, self.nth = collections.deque(maxlen=100000), {}, collections.Counter()
        os.makedirs(folder, exist_ok=True)

    def name(self, prefix):
        """A new name: no two are equal, and the same order of requests gives the same names."""
        with self.lock:
            self.made += 1
            return prefix + hashlib.sha256(f"{self.seed} {self.made}".encode()).hexdigest()[:DIGITS]

    # Blocks.

    def path(self, digest):
        return os.path.join(self.folder, digest.hex())

    def keep(self, digest, content):
        path = self.path(digest)
        if not os.path.exists(path):
            part = f"{path}.{threading.get_ident()}"
            with open(part, "wb", buffering=0) as file:
                file.write(content)
            os.rename(part, path)

    def block(self, digest):
        with open(self.path(digest), "rb", buffering=0) as file:
            return file.read()

    def noise(self, snapshot, index):
        """Content of an unwritten block, if `noise` is on."""
        seed = f"{snapshot.id} {index}".encode()
        return hashlib.shake_256(seed).digest(BLOCK)

    def read_back(self, snapshot):
        """Gives the volume of a snapshot, block by block: absent ones are zeros, or noise."""
        zeros = bytes(BLOCK)
        for index in range(snapshot.limit):
            digest = snapshot.blocks.get(index)
            if digest is not None:
                yield self.block(digest)
            else:
                yield self.noise(snapshot, index) if self.knobs.noise else zeros

    # Visibility.

    def hidden(self, what):
        """Whether a snapshot or image was made too recently to be found. Counts the requests that looked."""
        if what.unseen > 0:
            what.unseen -= 1
            return True
        return time.monotonic() - what.started < self.knobs.invisible_seconds

    def age(self, snapshot):
        """Cancels a snapshot to which nothing happened for its time-out."""
        if snapshot.state == "pending" and not snapshot.sealed and time.monotonic() - snapshot.touched > snapshot.timeout * self.knobs.minute:
            snapshot.state, snapshot.message = "error", "The snapshot was cancelled: no block was written within its timeout."

    def look(self, what):
        """A describe request: pending resources become ready."""
        if isinstance(what, Snapshot):
            self.age(what)
            ready = "completed"
            waits = what.state == "pending" and what.sealed
        else:
            ready, waits = "available", what.state == "pending"
        if waits:
            if what.left == 0:
                what.state = ready
            what.left -= 1

    def keyed(self, account, region, action, token, asked):
        """Result of the same request with that client token, or None."""
        if token is None:
            return None
        known = self.tokens.get((account, region, action, token))
        if known is None:
            return None
        if known[0] != asked:
            status, code = (409, "ConflictException") if action == "StartSnapshot" else (400, "IdempotentParameterMismatch")
            raise Refused(status, code, "The request uses the same client token as a previous, but non-identical request.")
        return known[1]

    def remember(self, account, region, action, token, asked, result):
        if token is not None:
            self.tokens[(account, region, action, token)] = (asked, result)

    # Injected faults.

    def admit(self, service, action):
        """Counts a request, and refuses it if a knob says so."""
        with self.lock:
            self.counts[action] += 1
            self.log.append(action)
            rate = self.knobs.throttle.get(action)
            if rate and not self.take(action, rate):
                self.refused[action] += 1
                raise throttled(service, action)
            every = self.knobs.every.get(action)
            if every and self.turn(action, every["n"]):
                self.refused[action] += 1
                ordered = Refused(every.get("status", 500), every.get("code", "InternalServerException"), "An order of the test.", every.get("reason"))
                ordered.after = every.get("retry_after")
                raise ordered
        if self.knobs.latency:
            time.sleep(self.knobs.latency)

    def take(self, action, rate):
        """A bucket that holds one second of requests."""
        now = time.monotonic()
        level, at = self.buckets.get(action, (rate, now))
        level = min(rate, level + (now - at) * rate)
        self.buckets[action] = (level - 1 if level >= 1 else level, now)
        return level >= 1

    def turn(self, what, n):
        """Whether this is an n-th time."""
        with self.lock:
            self.nth[what] += 1
            return bool(n) and self.nth[what] % n == 0

    def dump(self):
        """The whole state, for a test."""
        with self.lock:
            snapshots = {one.id: describe_snapshot(self, one) for one in self.snapshots.values()}
            images = {one.id: describe_image(one) for one in self.images.values()}
            return {"snapshots": snapshots, "images": images, "counts": dict(self.counts), "refused": dict(self.refused), "log": list(self.log)}


def throttled(service, action):
    # The rate limit of a snapshot has a separate code; that of an account has the usual one.
    if service == "ebs" and action in ("PutSnapshotBlock", "GetSnapshotBlock"):
        return Refused(400, "RequestThrottledException", "Request has been throttled.", "RESOURCE_LEVEL_THROTTLE")
    if service == "ec2":
        return Refused(503, "RequestLimitExceeded", "Request limit exceeded.")
    return Refused(400, "ThrottlingException", "Rate exceeded")


def describe_snapshot(world, one):
    world.age(one)
    return {
        "account": one.account, "region": one.region, "state": one.state, "sealed": one.sealed, "size": one.size, "parent": one.parent,
        "kms_key": one.kms_key, "tags": one.tags, "written": sorted(one.written), "description": one.description, "timeout": one.timeout,
        "client_token": one.asked.get("ClientToken"), "blocks": {str(index): digest.hex() for index, digest in sorted(one.blocks.items())},
    }


def describe_image(one):
    return {
        "account": one.account, "region": one.region, "state": one.state, "fields": one.fields, "snapshots": one.snapshots, "tags": one.tags,
        "permissions": one.permissions, "deprecation": one.deprecation,
    }
