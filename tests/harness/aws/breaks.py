"""Interrupted publications: faults of AWS and of the network, kills, and concurrent publishers."""

import random
import threading

from harness.aws import lab
from harness.report import case

COPY = lab.OTHERS[0]
OPTIONS = ["--copy-to", COPY, "--ssm-parameter", "/images/small"]
# A fault that a publication survives: knobs of the stand-in, and rules of the proxy.
SURVIVED = {
    "puts are throttled": ({"throttle": {"PutSnapshotBlock": 12}}, []),
    "every second put is throttled": ({"every": {"PutSnapshotBlock": {"n": 2, "status": 400, "code": "RequestThrottledException", "reason": "ACCOUNT_THROTTLED"}}}, []),
    "EC2 is throttled": ({"every": {"DescribeImages": {"n": 2, "status": 503, "code": "RequestLimitExceeded"}, "RegisterImage": {"n": 2, "status": 503, "code": "RequestLimitExceeded"}}}, []),
    "the service fails now and then": ({"every": {name: {"n": 3, "status": 500} for name in ("PutSnapshotBlock", "GetSnapshotBlock", "ListSnapshotBlocks", "DescribeSnapshots")}}, []),
    "the gateway fails without a body": ({}, [{"do": "status", "status": 503, "nth": [2, 5, 9, 20, 31]}]),
    "puts are reset in their bodies": ({}, [{"do": "reset", "action": "PutSnapshotBlock", "nth": [1, 7, 20]}]),
    "the answer to StartSnapshot is lost": ({}, [{"do": "lose", "action": "StartSnapshot", "nth": [1]}]),
    "answers to puts are lost": ({}, [{"do": "lose", "action": "PutSnapshotBlock", "nth": [1, 12, 34]}]),
    "the answer to CompleteSnapshot is lost": ({}, [{"do": "lose", "action": "CompleteSnapshot", "nth": [1]}]),
    "the answer to CompleteSnapshot is lost, and it stays pending": ({"pending_snapshot": 3}, [{"do": "lose", "action": "CompleteSnapshot", "nth": [1]}]),
    "the answer to RegisterImage is lost": ({}, [{"do": "lose", "action": "RegisterImage", "nth": [1]}]),
    "the answer to CopyImage is lost": ({}, [{"do": "lose", "action": "CopyImage", "nth": [1]}]),
    "the answer to PutParameter is lost": ({}, [{"do": "lose", "action": "PutParameter", "nth": [1]}]),
    "a put is confirmed with another checksum": ({"wrong_echo": 9}, []),
    "what was made is not found yet": ({"invisible": 4, "pending_snapshot": 3, "pending_image": 3}, []),
    "pages are short and some are empty": ({"page": 7, "empty_pages": True}, []),
    "answers come slowly": ({}, [{"do": "slow", "action": "GetSnapshotBlock", "nth": [1, 2], "seconds": 3}]),
}
# Those that wait for a time-out.
HUNG = {
    "a put is never answered": ({}, [{"do": "hang", "action": "PutSnapshotBlock", "nth": [5]}]),
    "a put is served and never answered": ({}, [{"do": "hang", "action": "PutSnapshotBlock", "nth": [5], "served": True}]),
    "StartSnapshot is served and never answered": ({}, [{"do": "hang", "action": "StartSnapshot", "nth": [1], "served": True}]),
    "CompleteSnapshot is served and never answered": ({}, [{"do": "hang", "action": "CompleteSnapshot", "nth": [1], "served": True}]),
    "RegisterImage is served and never answered": ({}, [{"do": "hang", "action": "RegisterImage", "nth": [1], "served": True}]),
    "CopyImage is served and never answered": ({}, [{"do": "hang", "action": "CopyImage", "nth": [1], "served": True}]),
    "a snapshot is not found for seconds": ({"invisible_seconds": 20.0}, []),
}
KILLS = 20
# Number of lookups of machine images in a publication without concurrent ones.
LOOKS = 7
SHORT = 3


def faults(judge):
    for name, (knobs, rules) in (SURVIVED | (HUNG if judge.everything else {})).items():
        judge.service.reset()
        judge.service.knobs(**knobs)
        planned = judge.service.proxy.plan(*rules)
        done = judge.program.run(judge.disks[0], *OPTIONS)
        case(f"{name}: it did happen", all(rule.done for rule in planned), planned)
        settled(judge, name, done)
    if judge.everything:
        wrong_blocks(judge)
    in_error(judge)
    expired(judge)
    denied_at_once(judge)


def settled(judge, name, done):
    """Whether all is as after a publication that nothing interrupted."""
    judge.service.calm()
    if judge.one(name, done, judge.disks[0]) and judge.one(f"{name}, copy", done, judge.disks[0], COPY):
        for region in lab.REGION, COPY:
            values = [one["Value"] for one in judge.service.client("ssm", region).get_parameters(Names=["/images/small"])["Parameters"]]
            case(f"{name}: the parameter of {region} names it", values == list(judge.service.images(region)), values)


def wrong_blocks(judge):
    """A block that AWS stores otherwise, and confirms. Two minutes pass until it is clear that no other publisher completed the snapshot."""
    service, store, image = judge.service, judge.program.store(), judge.disks[0]
    service.reset()
    service.knobs(wrong_store=20)
    done = judge.program.run(image, store=store)
    case("a block is stored otherwise: exit 1, and nothing is registered", done.code == 1 and "hint:" in done.err and not service.images(), done)
    case("a block is stored otherwise: the snapshot is named", any(name in done.err for name in service.snapshots()), done)


def in_error(judge):
    """A snapshot that AWS gives up in the middle."""
    service, store, image = judge.service, judge.program.store(), judge.disks[0]
    service.reset()
    service.proxy.plan({"do": "call", "action": "PutSnapshotBlock", "nth": [20], "then": lambda: give_up(service)})
    done = judge.program.run(image, store=store)
    lost = set(service.snapshots())
    case("a snapshot in error: exit 1, and it is named", done.code == 1 and all(name in done.err for name in lost), done)
    service.calm()
    done = judge.program.run(image, store=store)
    found = {name: one for name, one in service.snapshots().items() if name not in lost}
    case("a snapshot in error: the next run begins another one", done.code == 0 and list(found) == [done.json["snapshot_id"]] and len(service.images()) == 1, done)
    if len(found) == 1:
        wrong = lab.differ(service.blocks(next(iter(found))), image)
        case("a snapshot in error: that one holds the disk", not wrong, wrong)


def give_up(service):
    for name, one in service.snapshots().items():
        if one["state"] == "pending":
            service.control("snapshot", {"id": name, "state": "error", "message": "An order of the test."})


def expired(judge):
    """Credentials that expire in the middle: those of a container are renewed, those of the environment are not."""
    service, image = judge.service, judge.disks[0]
    service.reset()
    # Several keys in one run, each for more requests than are on their way at once.
    service.knobs(auth=True, expire_after=40)
    place = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{service.url}/_standin/credentials"}
    done = judge.program.run(image, *OPTIONS, "--workers", "8", key={}, environment=place)
    service.knobs(auth=False)
    settled(judge, "credentials expire and are renewed", done)
    service.reset()
    service.knobs(auth=True, expire_after=25)
    store = judge.program.store()
    done = judge.program.run(image, store=store, key=service.key(token=True))
    case("credentials expire for good: exit 1, and a hint", done.code == 1 and "hint:" in done.err and "xpire" in done.err, done)
    service.knobs(expire_after=0)
    done = judge.program.run(image, store=store, key=service.key(token=True))
    service.knobs(auth=False)
    case("credentials expire for good: the next run goes on", done.code == 0 and done.json["blocks_resumed"] > 0, done)
    judge.one("credentials expire for good", done, image)


def denied_at_once(judge):
    """Denied requests are not repeated."""
    service = judge.service
    service.reset()
    service.knobs(every={"PutSnapshotBlock": {"n": 1, "status": 403, "code": "AccessDeniedException", "reason": "UNAUTHORIZED_ACCOUNT"}})
    done = judge.program.run(judge.disks[0], "--workers", "1")
    count = service.state()["counts"].get("PutSnapshotBlock")
    case("a put is denied: exit 1, after one request", done.code == 1 and count == 1 and "ebs:PutSnapshotBlock" in done.err, (count, done))


# More than one run.


def two(judge):
    """Two publishers of one disk: from two stores at once, one behind the other at each step, and from one store."""
    judge.service.reset()
    runs = [judge.program.begin(judge.disks[0], *OPTIONS, store=judge.program.store()) for _ in range(2)]
    same(judge, "two publishers", [lab.ended(run) for run in runs])
    for action in "StartSnapshot", "PutSnapshotBlock", "CompleteSnapshot", "RegisterImage", "CopyImage", "PutParameter":
        overtaken(judge, action, 1)
    for nth in range(1, LOOKS + 1):
        overtaken(judge, "DescribeImages", nth)
    judge.service.reset()
    store = judge.program.store()
    runs = [judge.program.begin(judge.disks[0], *OPTIONS, store=store) for _ in range(2)]
    done = [lab.ended(run) for run in runs]
    case("two publishers from one store: both succeed", all(one.code == 0 for one in done), done)
    sent = sum(one.json.get("blocks_sent", 0) for one in done)
    case("two publishers from one store: one sends, the other waits", sent == judge.count, done)
    settled(judge, "two publishers from one store", done[0])


def same(judge, name, done):
    """Whether both publishers succeeded, and name the same machine image."""
    case(f"{name}: both succeed", all(one.code == 0 for one in done), done)
    case(f"{name}: they name the same", len({(one.json.get("image_id"), one.json.get("snapshot_id")) for one in done}) == 1, done)
    settled(judge, name, done[0])


def overtaken(judge, action, nth):
    """One publisher waits before a request of a kind, until another one has done everything."""
    judge.service.reset()
    faster = []

    def publish():
        faster.append(judge.program.run(judge.disks[0], *OPTIONS))

    [rule] = judge.service.proxy.plan({"do": "call", "action": action, "nth": [nth], "then": publish})
    done = judge.program.run(judge.disks[0], *OPTIONS, "--workers", "1")
    name = f"overtaken before {action} {nth}"
    case(f"{name}: it was", rule.done == 1 and faster)
    same(judge, name, faster + [done])


def kills(judge):
    """SIGKILL at seeded requests: before them, or when they are served and not answered. The next run does the rest."""
    judge.service.reset()
    judge.program.run(judge.disks[0], *OPTIONS)
    total, chance = judge.service.proxy.requests, random.Random(20)
    # Requests of one kind follow each other: each part of a publication has its share.
    moments = [(round((turn + chance.random()) * total / KILLS), chance.choice((False, True))) for turn in range(KILLS)]
    if not judge.everything:
        moments = chance.sample(moments, SHORT)
    for number, served in moments:
        killed(judge, max(1, number), served)


def killed(judge, number, served):
    name = f"killed {'after' if served else 'before'} request {number}"
    judge.service.reset()
    judge.service.knobs(pending_snapshot=1)
    store, ready, process = judge.program.store(), threading.Event(), []

    def kill():
        ready.wait(60)
        process[0].kill()

    [rule] = judge.service.proxy.plan({"do": "call", "nth": [number], "then": kill, "served": served})
    process.append(judge.program.begin(judge.disks[0], *OPTIONS, store=store))
    ready.set()
    done = lab.ended(process[0])
    case(f"{name}: it was", done.code == -9 and rule.done == 1, done)
    judge.service.proxy.plan()
    done = judge.program.run(judge.disks[0], *OPTIONS, store=store)
    case(f"{name}: no block is sent that the journal has", done.code == 0 and done.json["blocks_sent"] + done.json["blocks_resumed"] in (0, judge.count), done)
    settled(judge, name, done)
    judge.service.changes()
    done = judge.program.run(judge.disks[0], *OPTIONS, store=store)
    case(f"{name}: a third run changes nothing", done.code == 0 and not judge.service.changes(), done)
