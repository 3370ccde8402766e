"""`vmbake publish aws` with a stand-in for AWS, boto3, e2fsck, fsck.vfat and sgdisk.

Scenarios that take minutes are shorter unless slow tests run: three kills for twenty, no faults that end by a time-out, and only the whole IAM policy.
"""

import pathlib
import tempfile

import pytest

from harness.aws import breaks, disk, lab, rights
from harness.report import case

FRIEND = "210987654321"
FIELDS = {"Architecture": "x86_64", "BootMode": "uefi-preferred", "VirtualizationType": "hvm", "EnaSupport": True, "ImdsSupport": "v2.0", "RootDeviceName": "/dev/xvda"}


class Judge:
    """A stand-in, the program, and disks: three releases, of which the second has another block in a file, and the third lacks that file."""

    def __init__(self, vmbake, work, everything):
        self.work, self.everything, self.variants = work, everything, 0
        self.service = lab.Service()
        self.program = lab.Program(vmbake, self.service, work)
        self.disks = [work / f"release-{number}.raw" for number in (1, 2, 3)]
        extras = disk.payload("a", "b", "c", "d"), disk.payload("a", "b", "x", "d"), None
        for number, (path, extra) in enumerate(zip(self.disks, extras), 1):
            disk.make(path, number, extra)
        self.count = len(self.counting())

    def counting(self):
        """The blocks of the first disk that a snapshot has, as the stand-in got them."""
        self.service.reset()
        done = self.program.run(self.disks[0])
        if done.code != 0:
            raise RuntimeError(done)
        return next(iter(self.service.state()["snapshots"].values()))["blocks"]

    def variant(self):
        """The first disk with other bytes in a file."""
        self.variants += 1
        path = self.work / f"variant-{self.variants}.raw"
        wanted, other = disk.noise("b", disk.BLOCK)[-4096:], disk.noise(f"variant {self.variants}", 4096)
        with open(path, "wb") as file:
            file.truncate(disk.SIZE)
            for index, block in lab.content(self.disks[0]).items():
                file.seek(index * disk.BLOCK)
                file.write(block.replace(wanted, other))
        return path

    def fresh(self, *arguments, **how):
        """Publishes to an account that has nothing."""
        self.service.reset()
        return self.program.run(*arguments, **how)

    def one(self, name, done, image, region=lab.REGION):
        """Whether there is one machine image of one snapshot, which holds the disk."""
        images, snapshots = self.service.images(region), self.service.snapshots(region)
        case(f"{name}: it succeeds", done.code == 0, done)
        good = len(images) == 1 and len(snapshots) == 1 and list(images.values())[0]["snapshots"] == list(snapshots)
        case(f"{name}: there is one machine image, of one snapshot", good, (images, list(snapshots), done))
        if good:
            wrong = lab.differ(self.service.blocks(next(iter(snapshots)), region), image)
            case(f"{name}: the snapshot holds the disk", not wrong, wrong)
        return good


# Releases.


def releases(judge):
    """Three releases, each read back."""
    service, run, store = judge.service, judge.program.run, judge.program.store()
    first, second, third = judge.disks
    done = judge.fresh(first, store=store)
    judge.one("first release", done, first)
    image = service.client("ec2").describe_images(Owners=["self"])["Images"][0]
    found = {name: image.get(name) for name in FIELDS}
    case("first release: it is registered as it starts", found == FIELDS, image)
    volume = image["BlockDeviceMappings"][0]["Ebs"]
    case("first release: its volume is gp3, of 1 GiB", (volume["VolumeType"], volume["VolumeSize"]) == ("gp3", 1), volume)
    tags = {tag["Key"]: tag["Value"] for tag in image["Tags"]}
    expected = {"Name": "small-1-x86_64", "vmbake:family": "small", "vmbake:version": "1", "vmbake:disk-digest": done.json.get("disk_digest")}
    case("first release: its tags say what it is", expected.items() <= tags.items(), tags)
    report = {"image_id": image["ImageId"], "snapshot_id": volume["SnapshotId"], "blocks_sent": judge.count, "bytes_sent": judge.count * disk.BLOCK, "reused": False, "parent": None}
    case("first release: the report says the same", report.items() <= done.json.items(), done)
    encrypted(judge, "first release", done.json["snapshot_id"])

    for name, path, before in ("second release", second, first), ("third release", third, second):
        parent = done.json["snapshot_id"]
        service.control("counts", {})
        done = run(path, store=store)
        old, new = lab.content(before), lab.content(path)
        differing = sorted(index for index in old.keys() | new.keys() if old.get(index) != new.get(index))
        state = service.snapshots()[done.json["snapshot_id"]] if done.json else {}
        case(f"{name}: it begins as the one before", (done.code, state.get("parent"), done.json.get("parent")) == (0, parent, parent), done)
        case(f"{name}: what is sent is what differs", state.get("written") == differing and done.json["blocks_sent"] == len(differing), (differing, done))
        changes = service.changes()
        case(f"{name}: no block is sent twice", changes.get("PutSnapshotBlock") == len(differing), changes)
        blocks = service.blocks(done.json["snapshot_id"])
        case(f"{name}: the snapshot holds the disk", not lab.differ(blocks, path), lab.differ(blocks, path))
        freed = [index for index in old if index not in new]
        if path == third:
            case("third release: what counted before and is free now is sent as zeros", freed and all(blocks.get(index) == bytes(disk.BLOCK) for index in freed), freed)
            encrypted(judge, name, done.json["snapshot_id"])


def encrypted(judge, name, snapshot):
    """Whether a volume is sound whose absent blocks are noise."""
    path = judge.work / "encrypted.raw"
    lab.assemble(judge.service.blocks(snapshot), path)
    said = lab.tools(path, judge.work)
    case(f"{name}: read from an encrypted volume, e2fsck, fsck.vfat and sgdisk are content", not said, said)
    path.unlink()


def again(judge):
    """Completed work is not repeated."""
    service, run, image = judge.service, judge.program.run, judge.disks[0]
    options = ["--copy-to", lab.OTHERS[0], "--launch-permission", FRIEND, "--ssm-parameter", "/images/small", "--deprecate-at", "2027-11-01T00:00:00Z"]
    store = judge.program.store()
    plan = judge.fresh(image, "--dry-run", store=store)
    case("a dry run tells what would be sent", (plan.code, plan.json.get("blocks_sent"), plan.json.get("image_id")) == (0, judge.count, None), plan)
    # EC2 is asked for a registration with DryRun.
    case("and changes nothing", service.changes() == {"RegisterImage": 1} and not service.state()["images"] and not service.state()["snapshots"])
    first = run(image, *options, store=store)
    service.changes()
    for name, where in ("a second run", store), ("a second run with another store", judge.program.store()):
        done = run(image, *options, store=where)
        changes = service.changes()
        case(f"{name} changes nothing", done.code == 0 and not changes, (changes, done))
        same = all(done.json.get(key) == first.json.get(key) for key in ("image_id", "snapshot_id", "copies"))
        case(f"{name} names the same machine images", same and done.json.get("reused") is True, (first, done))
    done = run(image, *options, "--launch-permission", "111122223333", store=store)
    case("what is new is added, and nothing else", service.changes() == {"ModifyImageAttribute": 2}, done)


def parents(judge):
    """Snapshots that cannot be a parent: `--parent ID` refuses, `auto` says why and sends everything."""
    service, run, store, (first, second, _) = judge.service, judge.program.run, judge.program.store(), judge.disks
    done = judge.fresh(first, store=store)
    snapshot = done.json["snapshot_id"]
    count = len(lab.content(second)) and run(second, "--dry-run", "--parent", "none", store=store).json["blocks_sent"]

    def judged(name, reason, auto=None, **how):
        named = run(second, "--dry-run", "--parent", snapshot, store=how.get("store", store))
        case(f"a parent that is {name}: --parent refuses", named.code == 1 and reason in named.err and "hint:" in named.err, named)
        # With --json, only results are printed.
        planned = run(second, "--dry-run", "--progress", "json", store=how.get("store", store))
        good = (planned.code, planned.json.get("parent"), planned.json.get("blocks_sent")) == (0, None, count)
        case(f"a parent that is {name}: auto sends everything, and says why", good and (auto or reason) in planned.err, planned)

    for name, reason, auto, change, back in [
        ("foreign", "belongs to", "no snapshot of small", {"account": FRIEND, "shared": ["123456789012"]}, {"account": "123456789012", "shared": []}),
        ("larger", "its size is 2 GiB", None, {"size": 2}, {"size": 1}),
        ("encrypted", "it is encrypted", None, {"kms_key": "arn:aws:kms:eu-central-1:123456789012:key/x"}, {"kms_key": None}),
        ("archived", "archived", None, {"tier": "archive"}, {"tier": "standard"}),
        ("in error", "its state is error", "no snapshot of small", {"state": "error"}, {"state": "completed"}),
        ("public", "public", None, {"shared": ["all"]}, {"shared": []}),
    ]:
        service.control("snapshot", {"id": snapshot} | change)
        judged(name, reason, auto)
        service.control("snapshot", {"id": snapshot} | back)
    service.client("ec2").enable_ebs_encryption_by_default()
    judged("not encrypted where all is", "it is not encrypted")
    service.client("ec2").disable_ebs_encryption_by_default()
    empty = judge.program.store()
    judged("unknown to the store", "not in the store", store=empty)
    with_image = run(second, "--dry-run", "--parent-image", first, store=empty)
    case("--parent-image tells its blocks", with_image.json.get("parent") == snapshot, with_image)
    wrong = run(second, "--dry-run", "--parent-image", second, "--parent", snapshot, store=empty)
    case("--parent-image of another disk is refused", wrong.code == 1 and "the parent image is not" in wrong.err, wrong)
    ec2 = service.client("ec2")
    ec2.deregister_image(ImageId=done.json["image_id"])
    ec2.delete_snapshot(SnapshotId=snapshot)
    judged("gone", "no such snapshot", "no snapshot of small")
    service.changes()
    judge.one("a release whose parent is gone", run(second, store=store), second)


def keys(judge):
    """Encryption by a key, and by default."""
    service, run, store, (first, second, _) = judge.service, judge.program.run, judge.program.store(), judge.disks
    service.reset()
    key = service.client("kms").create_key()["KeyMetadata"]["Arn"]
    done = run(first, "--kms-key", key, store=store)
    judge.one("a release that is encrypted", done, first)
    state = service.snapshots()
    case("its key is the one that was asked for", [one["kms_key"] for one in state.values()] == [key], state)
    done = run(second, "--kms-key", key, store=store)
    case("the next one begins as it, with its key", done.code == 0 and done.json["parent"] in state and {one["kms_key"] for one in service.snapshots().values()} == {key}, done)
    done = run(second, "--name", "open", "--dry-run", "--progress", "json", store=store)
    case("one without a key does not", done.code == 0 and done.json["parent"] is None and "encrypted" in done.err, done)
    service.reset()
    service.client("ec2").enable_ebs_encryption_by_default()
    done = run(first, store=store)
    judge.one("a release where all is encrypted", done, first)
    case("it is", all(one["kms_key"] for one in service.snapshots().values()), service.state())
    done = run(second, store=store)
    case("the next one begins as it", done.code == 0 and done.json["parent"], done)


# Steps after a registration.


def spread(judge):
    """Copies, permissions, deprecation, and parameters last."""
    service, image, regions = judge.service, judge.disks[0], [lab.REGION, *lab.OTHERS]
    service.reset()
    service.knobs(pending_image=2, pending_snapshot=2, invisible=1)
    done = judge.program.run(image, "--copy-to", ",".join(lab.OTHERS), "--launch-permission", FRIEND, "--launch-permission", "arn:aws:organizations::123456789012:organization/o-example1234",
                             "--deprecate-at", "2027-11-01T00:00:00Z", "--ssm-parameter", "/images/small", "--tag", "team=base")
    log = [action for action in service.state()["log"] if action in lab.CHANGING]
    service.calm()
    case("copies: it succeeds", done.code == 0, done)
    case("copies: the report names them", sorted(done.json.get("copies", {})) == sorted(lab.OTHERS), done)
    for region in regions:
        if judge.one(f"copies: {region}", done, image, region):
            [(name, found)], [snapshot] = service.images(region).items(), service.snapshots(region).values()
            case(f"copies: {region} has the permissions", found["permissions"] == [{"UserId": FRIEND}, {"OrganizationArn": "arn:aws:organizations::123456789012:organization/o-example1234"}], found)
            case(f"copies: {region} has the deprecation", found["deprecation"] == "2027-11-01T00:00:00.000Z", found)
            case(f"copies: {region} has the tags on both", all(one["tags"].get("team") == "base" and one["tags"].get("vmbake:family") == "small" for one in (found, snapshot)), (found["tags"], snapshot["tags"]))
            value = service.client("ssm", region).get_parameter(Name="/images/small")["Parameter"]
            case(f"copies: {region} has the parameter", (value["Value"], value["DataType"]) == (name, "aws:ec2:image"), value)
    first = log.index("PutParameter") if "PutParameter" in log else 0
    case("parameters come last", log[first:] == ["PutParameter"] * len(regions) and len(log) > first > 0, log[-9:])


def broken_copies(judge):
    """A copy that fails leaves no parameter behind."""
    service, image = judge.service, judge.disks[0]
    service.reset()
    service.knobs(every={"CopyImage": {"n": 1, "status": 400, "code": "ResourceLimitExceeded"}})
    store, options = judge.program.store(), ["--copy-to", lab.OTHERS[0], "--ssm-parameter", "/images/small"]
    done = judge.program.run(image, *options, store=store)
    case("a copy that is refused: exit 1, and the message says what", done.code == 1 and "ResourceLimitExceeded" in done.err and "ec2:CopyImage" in done.err, done)
    case("a copy that is refused: no parameter is written", not service.changes().get("PutParameter"))
    service.calm()
    done = judge.program.run(image, *options, store=store)
    changes = service.changes()
    case("a copy that is refused: the next run goes on", done.code == 0 and changes.get("CopyImage") == 1 and "RegisterImage" not in changes, (changes, done))


def names(judge):
    """Names and boot modes that cannot be."""
    service, run, image, other = judge.service, judge.program.run, judge.disks[0], judge.variant()
    first = judge.fresh(image, "--name", "taken")
    service.changes()
    done = run(other, "--name", "taken")
    case("a name that is taken: exit 1, and whose it is", done.code == 1 and first.json["image_id"] in done.err and "hint:" in done.err, done)
    case("a name that is taken: nothing is sent", not service.changes())
    for name in "ab", "a" * 129, "a:b", "ü" * 5:
        done = run(other, "--name", name)
        case(f"the name {name[:5]}: refused", done.code == 1 and "hint:" in done.err and not service.changes(), done)
    for options, fields in [
        (["--tpm"], {"BootMode": "uefi", "TpmSupport": "v2.0"}),
        (["--boot-mode", "legacy-bios", "--imds", "optional", "--volume-type", "gp2"], {"BootMode": "legacy-bios", "ImdsSupport": None}),
    ]:
        done = judge.fresh(image, *options)
        found = next(iter(service.images().values()), {"fields": {}})["fields"]
        case(f"{' '.join(options)}: is registered", done.code == 0 and {key: found.get(key) for key in fields} == fields, (found, done))
    done = run(other, "--tpm", "--boot-mode", "legacy-bios")
    case("a TPM by BIOS: refused", done.code != 0 and "hint:" in done.err, done)


def public(judge):
    """Public images are refused early where the account forbids them."""
    service, run, image = judge.service, judge.program.run, judge.disks[0]
    done = judge.fresh(image, "--launch-permission", "public", "--yes")
    case("public below block public access: refused", done.code == 1 and "block public access" in done.err and "hint:" in done.err, done)
    case("public below block public access: nothing was sent", not service.changes())
    for region in lab.REGION, lab.OTHERS[0]:
        service.client("ec2", region).disable_image_block_public_access()
    service.client("ec2").enable_ebs_encryption_by_default()
    done = run(image, "--launch-permission", "public", "--yes")
    case("public where all is encrypted: refused", done.code == 1 and "encrypted" in done.err, done)
    case("public where all is encrypted: nothing was sent", not service.changes())
    service.client("ec2").disable_ebs_encryption_by_default()
    done = run(image, "--launch-permission", "public")
    case("public, without a terminal: refused", done.code != 0 and not service.changes() and "--yes" in done.err, done)
    store = judge.program.store()
    done = run(image, "--launch-permission", "public", "--yes", store=store)
    case("public: it is", done.code == 0 and [one["permissions"] for one in service.images().values()] == [[{"Group": "all"}]], done)
    service.changes()
    service.client("ec2").enable_image_block_public_access(ImageBlockPublicAccessState="block-new-sharing")
    done = run(image, "--launch-permission", "public", "--yes", store=store)
    case("public, again: it needs nothing", done.code == 0 and not service.changes(), done)
    done = judge.fresh(image, "--copy-to", lab.OTHERS[0], store=judge.program.store())
    service.client("ec2").disable_image_block_public_access()
    service.changes()
    done = run(image, "--launch-permission", "public", "--yes", "--copy-to", lab.OTHERS[0], store=store)
    case("public where the region of a copy forbids it: refused before anything is public",
         done.code == 1 and "block public access" in done.err and not service.changes(), done)


def garbage(judge):
    """`gc` removes old images, but none in use."""
    service, run = judge.service, judge.program.run
    service.reset()
    ec2 = service.client("ec2")
    ec2.disable_image_block_public_access()
    made = {}
    for name in "plain", "shared", "public", "used", "lent", "borrowed", "old", "new":
        options = {"shared": ["--launch-permission", FRIEND], "public": ["--launch-permission", "public", "--yes"]}.get(name, [])
        done = run(judge.variant(), "--name", name, "--parent", "none", "--verify", "index", *options)
        if done.code != 0:
            return case(f"gc: {name} is published", False, done)
        made[name] = done.json
        lab.wait_for_next_second()
    instance = ec2.run_instances(ImageId=made["used"]["image_id"], MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.modify_snapshot_attribute(SnapshotId=made["lent"]["snapshot_id"], OperationType="add", UserIds=[FRIEND])
    mapping = {"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": made["borrowed"]["snapshot_id"]}}
    ec2.register_image(Name="another", Architecture="x86_64", RootDeviceName="/dev/xvda", VirtualizationType="hvm", BlockDeviceMappings=[mapping])
    pending = service.client("ebs").start_snapshot(VolumeSize=1, Tags=[{"Key": "vmbake:family", "Value": "small"}])["SnapshotId"]
    service.changes()
    family = ["gc", "--family", "small", "--keep", "1"]
    plan = run(*family, "--dry-run")
    case("gc: a dry run changes nothing", plan.code == 0 and not service.changes(), plan)
    refused = run(*family)
    case("gc: without --yes and a terminal, nothing is removed", refused.code != 0 and not service.changes(), refused)
    other = run("gc", "--family", "other", "--keep", "1", "--yes")
    case("gc: another family loses nothing", other.code == 0 and not service.changes(), other)
    done = run(*family, "--yes")
    images, snapshots = set(service.images()), set(service.snapshots())
    stay = {name for name, one in made.items() if one["image_id"] in images}
    case("gc: it succeeds", done.code == 0, done)
    case("gc: what is shared, public, used or new stays, and the rest goes", stay == {"shared", "public", "used", "new"}, (stay, done))
    stay = {name for name, one in made.items() if one["snapshot_id"] in snapshots}
    case("gc: so do snapshots, and those that are lent or another image has", stay == {"shared", "public", "used", "new", "lent", "borrowed"}, (stay, done))
    case("gc: a snapshot that is being sent stays, and is named", pending in snapshots and pending in done.out, done)
    reasons = {one["name"]: one.get("kept") for one in done.json.get("images", [])}
    case("gc: it says why", instance in str(reasons.get("used")) and FRIEND in str(reasons.get("shared")) and "public" in str(reasons.get("public")), reasons)
    service.changes()
    done = run(*family, "--yes")
    case("gc: a second run has nothing to do", done.code == 0 and not service.changes(), done)


SCENARIOS = {
    "releases": releases, "again": again, "parents": parents, "keys": keys, "spread": spread, "broken-copies": broken_copies, "names": names, "public": public,
    "gc": garbage, "faults": breaks.faults, "two": breaks.two, "kills": breaks.kills, "rights": rights.rights,
}


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["short", "all"])
def judge(request, vmbake):
    if tool := disk.missing_tool():
        pytest.skip(f"needs {tool}")
    with tempfile.TemporaryDirectory(prefix="publish.") as work:
        judge = Judge(vmbake, pathlib.Path(work), request.param)
        yield judge
        judge.service.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_aws(judge, scenario):
    judge.service.reset()
    SCENARIOS[scenario](judge)
