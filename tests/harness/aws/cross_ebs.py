"""AWS's documented behavior of the EBS direct APIs, tested with boto3 against the stand-in.

https://docs.aws.amazon.com/ebs/latest/APIReference/ and https://docs.aws.amazon.com/ebs/latest/userguide/ebs-accessing-snapshot.html.
"""

import hashlib
import time

from harness.aws.asks import BLOCK, case, checksum, content, linear, refused, until

INVALID = (400, "ValidationException")
CONFLICT = (409, "ConflictException")
LIMIT = 2048  # Blocks of a volume of 1 GiB.


def writing(aws):
    started = aws.start(1, Description="a disk", Tags=[{"Key": "Name", "Value": "one"}])
    name = started["SnapshotId"]
    shown = {key: started.get(key) for key in ("Status", "VolumeSize", "BlockSize", "Description", "Tags", "SseType", "OwnerId")}
    case("StartSnapshot tells a pending snapshot of blocks of 512 KiB", shown == {
        "Status": "pending", "VolumeSize": 1, "BlockSize": BLOCK, "Description": "a disk", "Tags": [{"Key": "Name", "Value": "one"}], "SseType": "none", "OwnerId": "123456789012",
    } and name.startswith("snap-") and started["ResponseMetadata"]["HTTPStatusCode"] == 201, started)
    block = content(1)
    answer = aws.put(name, 0, block)
    case("PutSnapshotBlock echoes the checksum", (answer["Checksum"], answer["ChecksumAlgorithm"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (checksum(block), "SHA256", 201), answer)
    refused("a block whose Data-Length is not 524288 is refused", INVALID, aws.put, snapshot=name, index=1, content=block, DataLength=4096)
    refused("a block that is shorter than its Data-Length is refused", INVALID, aws.put, snapshot=name, index=1, content=block[:4096])
    refused("a block longer than 512 KiB is refused", INVALID, aws.put, snapshot=name, index=1, content=block + b"x", DataLength=BLOCK + 1)
    refused("a block that is not that of its checksum is refused", INVALID, aws.put, snapshot=name, index=1, content=block, Checksum=checksum(b"other"))
    refused("another algorithm than SHA256 is refused", INVALID, aws.put, snapshot=name, index=1, content=block, ChecksumAlgorithm="MD5")
    refused("a block behind the end of the volume is refused", INVALID, aws.put, snapshot=name, index=LIMIT, content=block)
    refused("a block with a negative index is refused", INVALID, aws.put, snapshot=name, index=-1, content=block)
    case("the last block of the volume is taken", aws.put(name, LIMIT - 1, block)["Checksum"] == checksum(block))
    refused("Progress above 100 is refused", INVALID, aws.put, snapshot=name, index=1, content=block, Progress=101)
    aws.put(name, 0, content(2))
    aws.complete(name, 2)
    case("a block that is put once more is overwritten, and counts once", aws.read(name, 0, aws.indexes(name)[0]) == content(2))
    for what, asked in ("no GiB", {"size": 0}), ("65537 GiB", {"size": 65537}), ("a time-out of 9 minutes", {"Timeout": 9}), ("a time-out of 4321 minutes", {"Timeout": 4321}), \
            ("a description of 256 characters", {"Description": "x" * 256}), ("a tag of AWS's own", {"Tags": [{"Key": "aws:x", "Value": ""}]}):
        refused(f"StartSnapshot with {what} is refused", INVALID, aws.start, **asked)
    refused("a put to a snapshot that never was is refused", (404, "ResourceNotFoundException", "SNAPSHOT_NOT_FOUND"), aws.put, snapshot="snap-0123456789abcdef0", index=0, content=block)


def tokens(aws):
    first = aws.start(1, ClientToken="one")
    case("the same ClientToken with the same parameters gives the same snapshot", aws.start(1, ClientToken="one")["SnapshotId"] == first["SnapshotId"])
    refused("the same ClientToken with other parameters is refused", CONFLICT, aws.start, size=2, ClientToken="one")
    refused("the same ClientToken with a description is refused", CONFLICT, aws.start, size=1, ClientToken="one", Description="x")
    case("another ClientToken gives another snapshot", aws.start(1, ClientToken="two")["SnapshotId"] != first["SnapshotId"])
    case("no ClientToken gives another snapshot each time", aws.start(1)["SnapshotId"] != aws.start(1)["SnapshotId"])
    case("a ClientToken holds for one region", aws.client("ebs", "eu-west-1").start_snapshot(VolumeSize=2, ClientToken="one")["SnapshotId"] != first["SnapshotId"])
    aws.complete(first["SnapshotId"], 0)
    again = aws.start(1, ClientToken="one")
    case("the ClientToken of a completed snapshot gives that one", (again["SnapshotId"], again["Status"]) == (first["SnapshotId"], "completed"), again)


def completing(aws):
    blocks = {index: content(index) for index in (9, 2, 300)}
    name = aws.start(1)["SnapshotId"]
    for index, block in blocks.items():
        aws.put(name, index, block)
    for count in 0, 2, 4:
        refused(f"CompleteSnapshot with {count} of 3 blocks is refused", INVALID, aws.complete, snapshot=name, count=count)
    full = {"ChecksumAlgorithm": "SHA256", "ChecksumAggregationMethod": "LINEAR"}
    unordered = checksum(*(hashlib.sha256(block).digest() for block in blocks.values()))
    refused("a LINEAR checksum in the order of the puts is refused", INVALID, aws.complete, snapshot=name, count=3, Checksum=unordered, **full)
    refused("a LINEAR checksum of the bytes is refused", INVALID, aws.complete, snapshot=name, count=3, Checksum=checksum(*(blocks[index] for index in sorted(blocks))), **full)
    refused("a checksum without its method is refused", INVALID, aws.complete, snapshot=name, count=3, Checksum=linear(blocks))
    answer = aws.complete(name, 3, Checksum=linear(blocks), **full)
    case("CompleteSnapshot takes the LINEAR checksum of the digests by index", answer["ResponseMetadata"]["HTTPStatusCode"] == 202 and answer["Status"] in ("pending", "completed"), answer)
    refused("a put to a completed snapshot is refused", INVALID, aws.put, snapshot=name, index=1, content=blocks[2])
    listed = aws.indexes(name)
    case("the blocks that were put are listed, and no others", sorted(listed) == [2, 9, 300], listed)
    page = next(aws.pages(name))
    case("a list tells the size of the volume and of blocks, and until when tokens hold", (page["VolumeSize"], page["BlockSize"]) == (1, BLOCK) and page["ExpiryTime"].timestamp() > time.time(), page)
    got = aws.client("ebs").get_snapshot_block(SnapshotId=name, BlockIndex=9, BlockToken=listed[9])
    case("GetSnapshotBlock gives the block, its length and checksum", (got["BlockData"].read(), got["DataLength"], got["Checksum"], got["ChecksumAlgorithm"]) == (blocks[9], BLOCK, checksum(blocks[9]), "SHA256"))
    refused("the token of another block is refused", (*INVALID, "INVALID_BLOCK_TOKEN"), aws.client("ebs").get_snapshot_block, SnapshotId=name, BlockIndex=9, BlockToken=listed[2])
    refused("a token of one's own is refused", (*INVALID, "INVALID_BLOCK_TOKEN"), aws.client("ebs").get_snapshot_block, SnapshotId=name, BlockIndex=9, BlockToken="AAAA")


def parents(aws):
    base = {0: content("a"), 5: content("b"), 2047: content("c")}
    first = aws.made(base)
    started = aws.start(1, ParentSnapshotId=first)
    case("StartSnapshot tells the parent", started.get("ParentSnapshotId") == first, started)
    child = started["SnapshotId"]
    aws.put(child, 5, content("d"))
    aws.put(child, 6, content("e"))
    refused("CompleteSnapshot of a child does not count what the parent wrote", INVALID, aws.complete, snapshot=child, count=4)
    aws.complete(child, 2, ChecksumAlgorithm="SHA256", ChecksumAggregationMethod="LINEAR", Checksum=linear({5: content("d"), 6: content("e")}))
    view = {index: aws.read(child, index, token) for index, token in aws.indexes(child).items()}
    case("a child lists and reads its whole view", view == base | {5: content("d"), 6: content("e")}, sorted(view))
    case("the parent stays as it was", {index: aws.read(first, index, token) for index, token in aws.indexes(first).items()} == base)
    aws.client("ec2").delete_snapshot(SnapshotId=first)
    case("a child outlives its parent", aws.read(child, 0, aws.indexes(child)[0]) == base[0])
    refused("a parent that is gone is refused", (404, "ResourceNotFoundException", "SNAPSHOT_NOT_FOUND"), aws.start, ParentSnapshotId=first)
    large = aws.made({4000: content("a")}, size=2)
    refused("a volume smaller than that of its parent is refused", INVALID, aws.start, size=1, ParentSnapshotId=large)
    case("a volume larger than that of its parent is taken", aws.start(3, ParentSnapshotId=large)["VolumeSize"] == 3)
    for encrypted in True, False:
        refused(f"a parent with Encrypted={encrypted} is refused", INVALID, aws.start, ParentSnapshotId=child, Encrypted=encrypted)
    refused("a parent that is pending is refused", INVALID, aws.start, ParentSnapshotId=aws.start(1)["SnapshotId"])
    stranger = aws.control("keys", account="210987654321")
    aws.client("ec2").modify_snapshot_attribute(SnapshotId=child, Attribute="createVolumePermission", OperationType="add", UserIds=["210987654321"])
    case("another account reads what is shared with it", len(aws.client("ebs", key=stranger).list_snapshot_blocks(SnapshotId=child)["Blocks"]) == 4)
    refused("a parent of another account is refused", INVALID, aws.client("ebs", key=stranger).start_snapshot, VolumeSize=1, ParentSnapshotId=child)
    refused("what is not shared is not found", (404, "ResourceNotFoundException"), aws.client("ebs", key=stranger).list_snapshot_blocks, SnapshotId=large)
    refused("what is in another region is not found", (404, "ResourceNotFoundException"), aws.client("ebs", "eu-west-1").list_snapshot_blocks, SnapshotId=large)


def changes(aws):
    def changed(one, two):
        return aws.client("ebs").list_changed_blocks(FirstSnapshotId=one, SecondSnapshotId=two)
    first = aws.made({0: content("a"), 5: content("b"), 7: content("x")})
    second = aws.made({5: content("c"), 6: content("d")}, ParentSnapshotId=first)
    third = aws.made({7: content("e"), 6: content("f")}, ParentSnapshotId=second)
    answer = changed(first, second)
    found = {one["BlockIndex"]: one for one in answer["ChangedBlocks"]}
    case("ListChangedBlocks has the blocks that a child wrote", sorted(found) == [5, 6], answer)
    case("a block that the first has not has no first token", "FirstBlockToken" not in found.get(6, {}) and "SecondBlockToken" in found.get(6, {}), found.get(6))
    both = found.get(5, {})
    case("a changed block has the tokens of both", [aws.read(first, 5, both["FirstBlockToken"]), aws.read(second, 5, both["SecondBlockToken"])] == [content("b"), content("c")], both)
    case("changes of two generations are those of both", [one["BlockIndex"] for one in changed(first, third)["ChangedBlocks"]] == [5, 6, 7])
    case("a snapshot has no changes since itself", changed(second, second)["ChangedBlocks"] == [])
    other = aws.made({0: content("a")})
    refused("ListChangedBlocks of two lineages is refused", (*INVALID, "UNRELATED_SNAPSHOTS"), changed, one=first, two=other)
    refused("ListChangedBlocks without the first is refused", INVALID, aws.client("ebs").list_changed_blocks, SecondSnapshotId=second)
    refused("ListChangedBlocks of a pending snapshot is refused", INVALID, changed, one=first, two=aws.start(1, ParentSnapshotId=first)["SnapshotId"])


def pages(aws):
    block = content(0)
    name = aws.made({index: block for index in range(0, 500, 2)})
    wanted = list(range(0, 500, 2))
    sizes = [len(page["Blocks"]) for page in aws.pages(name, MaxResults=100)]
    case("MaxResults bounds a page", sizes == [100, 100, 50], sizes)
    case("the pages have all blocks in their order", list(aws.indexes(name, MaxResults=100)) == wanted)
    case("StartingBlockIndex begins there", list(aws.indexes(name, MaxResults=100, StartingBlockIndex=251)) == wanted[126:])
    aws.knobs(page=100, empty_pages=True)
    sizes = [(len(page["Blocks"]), bool(page.get("NextToken"))) for page in aws.pages(name)]
    case("an empty page may have a token", (0, True) in sizes and list(aws.indexes(name)) == wanted, sizes)
    child = aws.made({index: content(1) for index in range(150)}, ParentSnapshotId=name)
    found, asked = [], {}
    while True:
        page = aws.client("ebs").list_changed_blocks(FirstSnapshotId=name, SecondSnapshotId=child, **asked)
        found += [one["BlockIndex"] for one in page["ChangedBlocks"]]
        if not page.get("NextToken"):
            break
        asked = {"NextToken": page["NextToken"]}
    case("ListChangedBlocks has pages too", found == list(range(150)), found)
    token = next(aws.pages(name, MaxResults=100))["NextToken"]
    refused("a page token of another snapshot is refused", (*INVALID, "INVALID_PAGE_TOKEN"), aws.client("ebs").list_snapshot_blocks, SnapshotId=child, NextToken=token)
    refused("a page token of one's own is refused", (*INVALID, "INVALID_PAGE_TOKEN"), aws.client("ebs").list_snapshot_blocks, SnapshotId=name, NextToken="AAAA")


def expiry(aws):
    name = aws.made({index: content(0) for index in range(101)})
    aws.knobs(page_token_seconds=0.1, block_token_seconds=0.1)
    page = next(aws.pages(name, MaxResults=100))
    time.sleep(0.2)
    refused("an old page token is refused", (*INVALID, "INVALID_PAGE_TOKEN"), aws.client("ebs").list_snapshot_blocks, SnapshotId=name, NextToken=page["NextToken"])
    refused("an old block token is refused", (*INVALID, "INVALID_BLOCK_TOKEN"), aws.client("ebs").get_snapshot_block, SnapshotId=name, BlockIndex=0, BlockToken=page["Blocks"][0]["BlockToken"])


def visibility(aws):
    gone = (404, "ResourceNotFoundException", "SNAPSHOT_NOT_FOUND")
    aws.knobs(invisible=2)
    name = aws.start(1)["SnapshotId"]
    for _ in range(2):
        refused("a put right after the start may find no snapshot", gone, aws.put, snapshot=name, index=0, content=content(0))
    case("a moment later it is found", aws.put(name, 0, content(0))["Checksum"] == checksum(content(0)))
    aws.knobs(invisible_seconds=0.5)
    name = aws.start(1)["SnapshotId"]
    refused("DescribeSnapshots right after the start may not find it either", (400, "InvalidSnapshot.NotFound"), aws.client("ec2").describe_snapshots, SnapshotIds=[name])
    seen = until(lambda: name in [one["SnapshotId"] for one in aws.client("ec2").describe_snapshots(OwnerIds=["self"])["Snapshots"]])
    case("half a second later it is described", seen)


def states(aws):
    def state():
        one = aws.client("ec2").describe_snapshots(SnapshotIds=[name])["Snapshots"][0]
        return one["State"]
    aws.knobs(pending_snapshot=2)
    name = aws.start(1, Description="of a test")["SnapshotId"]
    aws.put(name, 0, content(0))
    for what, call, asked in ("ListSnapshotBlocks", "list_snapshot_blocks", {}), ("GetSnapshotBlock", "get_snapshot_block", {"BlockIndex": 0, "BlockToken": "AAAA"}):
        refused(f"{what} of a pending snapshot is refused", INVALID, getattr(aws.client("ebs"), call), SnapshotId=name, **asked)
    case("a snapshot that is completed may stay pending", aws.complete(name, 1)["Status"] == "pending")
    refused("nothing is read of it before it is completed", INVALID, aws.client("ebs").list_snapshot_blocks, SnapshotId=name)
    refused("and nothing is put", INVALID, aws.put, snapshot=name, index=1, content=content(0))
    seen = [state() for _ in range(4)]
    case("DescribeSnapshots tells pending, then completed", seen == ["pending", "pending", "completed", "completed"], seen)
    aws.knobs(minute=0.02)
    name = aws.start(1, Timeout=10)["SnapshotId"]
    for _ in range(4):
        time.sleep(0.1)
        aws.put(name, 0, content(0))
    case("a snapshot that is written to lives on", state() == "pending")
    case("one that idles for its Timeout is in error", until(lambda: state() == "error"))
    one = aws.client("ec2").describe_snapshots(SnapshotIds=[name])["Snapshots"][0]
    case("DescribeSnapshots says why", bool(one.get("StateMessage")), one)
    refused("a put to a snapshot in error is refused", INVALID, aws.put, snapshot=name, index=0, content=content(0))
    refused("one in error is not completed", INVALID, aws.complete, snapshot=name, count=1)
    aws.knobs()
    for _ in range(100):
        aws.start(1)
    refused("the 101st pending snapshot is refused", (400, "ConcurrentLimitExceededException"), aws.start)


def encryption(aws):
    ec2, kms = aws.client("ec2"), aws.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    plain = aws.made({0: content(0)})
    started = aws.start(1, Encrypted=True, KmsKeyArn=key)
    case("StartSnapshot tells the key", (started.get("KmsKeyArn"), started.get("SseType")) == (key, "sse-kms"), started)
    refused("a key without Encrypted is refused", INVALID, aws.start, KmsKeyArn=key)
    refused("a key that is not there is refused", INVALID, aws.start, Encrypted=True, KmsKeyArn=key[:-12] + "000000000000")
    name = started["SnapshotId"]
    aws.complete(name, 0)
    one = ec2.describe_snapshots(SnapshotIds=[name])["Snapshots"][0]
    case("DescribeSnapshots tells it too", (one["Encrypted"], one.get("KmsKeyId")) == (True, key), one)
    child = aws.start(1, ParentSnapshotId=name)
    case("a child has the key of its parent", child.get("KmsKeyArn") == key, child)
    refused("a parent with a key is refused", INVALID, aws.start, ParentSnapshotId=plain, KmsKeyArn=key)
    ec2.enable_ebs_encryption_by_default()
    case("encryption by default is told", ec2.get_ebs_encryption_by_default()["EbsEncryptionByDefault"] is True)
    case("by default a snapshot is encrypted then", bool(aws.start(1).get("KmsKeyArn")))
    case("and by a key that is named, by that", aws.start(1, Encrypted=True, KmsKeyArn=key).get("KmsKeyArn") == key)
    refused("a plain snapshot is refused then", INVALID, aws.start, Encrypted=False)
    refused("a plain parent is refused then", INVALID, aws.start, ParentSnapshotId=plain)
    ec2.disable_ebs_encryption_by_default()
    case("without it a snapshot is plain again", "KmsKeyArn" not in aws.start(1))


def faults(aws):
    name = aws.start(1)["SnapshotId"]
    aws.knobs(throttle={"PutSnapshotBlock": 1, "ListSnapshotBlocks": 0.5})
    aws.put(name, 0, content(0))
    refused("a snapshot that gets too much answers RequestThrottledException", (400, "RequestThrottledException", "RESOURCE_LEVEL_THROTTLE"), aws.put, snapshot=name, index=0, content=content(0))
    refused("an account that asks too much gets ThrottlingException", (400, "ThrottlingException"), aws.client("ebs").list_snapshot_blocks, SnapshotId=name)
    aws.knobs(every={"PutSnapshotBlock": {"n": 1}})
    refused("a failure of the service is 500", (500, "InternalServerException"), aws.put, snapshot=name, index=0, content=content(0))
    aws.knobs(every={"StartSnapshot": {"n": 1, "status": 402, "code": "ServiceQuotaExceededException", "reason": "DEPENDENCY_SERVICE_QUOTA_EXCEEDED"}})
    refused("a quota is 402", (402, "ServiceQuotaExceededException", "DEPENDENCY_SERVICE_QUOTA_EXCEEDED"), aws.start)
    aws.knobs(wrong_echo=1)
    case("the knob wrong_echo has another checksum echoed", aws.put(name, 0, content(0))["Checksum"] != checksum(content(0)))
    aws.knobs(wrong_store=1)
    case("the knob wrong_store echoes the right one", aws.put(name, 1, content(1))["Checksum"] == checksum(content(1)))
    aws.knobs(noise=True)
    aws.complete(name, 2)
    tokens = aws.indexes(name)
    case("and stores another block", (aws.read(name, 0, tokens[0]) == content(0), aws.read(name, 1, tokens[1]) == content(1)) == (True, False))
    case("noise never lists a block that was not written", sorted(tokens) == [0, 1])
    first, second = aws.raw(name, 3), aws.raw(name, 3)
    aws.knobs()
    case("a volume with noise has the blocks, and the same noise each time", first == second and first[:BLOCK] == content(0) and len(set(first[2 * BLOCK:])) > 200)
    case("a volume without noise has zeros there", aws.raw(name, 3)[2 * BLOCK:] == bytes(BLOCK))


PARTS = (writing, tokens, completing, parents, changes, pages, expiry, visibility, states, encryption, faults)
