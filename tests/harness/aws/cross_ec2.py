"""AWS's documented behavior of machine images, snapshots and parameters, tested with boto3 against the stand-in.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/ and https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-ec2-aliases.html.
"""

import datetime

from harness.aws.asks import REGION, case, content, refused

OTHER = "eu-west-1"
FRIEND = "210987654321"
NO_IMAGE = (400, "InvalidAMIID.NotFound")


def described(aws, image, region=REGION):
    return aws.client("ec2", region).describe_images(ImageIds=[image])["Images"][0]


def registering(aws):
    ec2, snapshot = aws.client("ec2"), aws.made({0: content(0)}, size=3)
    image = aws.image(
        "node 1", snapshot, Description="a node", BootMode="uefi", TpmSupport="v2.0", ImdsSupport="v2.0", Architecture="arm64",
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot, "VolumeType": "gp3", "VolumeSize": 8, "DeleteOnTermination": True}}],
        TagSpecifications=[{"ResourceType": "image", "Tags": [{"Key": "Name", "Value": "node"}]}])
    one = described(aws, image)
    wanted = {
        "ImageId": image, "Name": "node 1", "Description": "a node", "Architecture": "arm64", "VirtualizationType": "hvm", "BootMode": "uefi", "TpmSupport": "v2.0", "ImdsSupport": "v2.0",
        "EnaSupport": True, "RootDeviceName": "/dev/xvda", "RootDeviceType": "ebs", "State": "available", "Public": False, "OwnerId": "123456789012", "ImageType": "machine",
        "Hypervisor": "xen", "PlatformDetails": "Linux/UNIX", "Tags": [{"Key": "Name", "Value": "node"}], "ImageLocation": "123456789012/node 1",
    }
    for key, value in wanted.items():
        case(f"DescribeImages keeps {key}", one.get(key) == value, one.get(key))
    ebs = one["BlockDeviceMappings"][0]["Ebs"]
    case("DescribeImages keeps the root device", (ebs["SnapshotId"], ebs["VolumeSize"], ebs["VolumeType"], ebs["DeleteOnTermination"], ebs["Encrypted"]) == (snapshot, 8, "gp3", True, False), ebs)
    case("CreationDate is a time", datetime.datetime.fromisoformat(one["CreationDate"]).tzinfo is not None, one["CreationDate"])
    plain = ec2.register_image(Name="plain", RootDeviceName="/dev/sda1", BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": snapshot}}])["ImageId"]
    one = described(aws, plain)
    case("what is not said is i386, paravirtual, without boot mode, TPM, IMDSv2 and ENA", (one["Architecture"], one["VirtualizationType"]) == ("i386", "paravirtual")
         and not {"BootMode", "TpmSupport", "ImdsSupport"} & set(one) and not one.get("EnaSupport"), one)
    case("the volume is as large as its snapshot", one["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 3)
    refused("a name twice is refused", (400, "InvalidAMIName.Duplicate"), aws.image, name="node 1", snapshot=snapshot)
    for name in "ab", "x" * 129, "a:b", "a*b":
        refused(f"the name {name[:8]} of {len(name)} is refused", (400, "InvalidAMIName.Malformed"), aws.image, name=name, snapshot=snapshot)
    refused("TPM without uefi is refused", (400, "InvalidParameterCombination"), aws.image, name="tpm", snapshot=snapshot, TpmSupport="v2.0", BootMode="uefi-preferred")
    refused("an architecture that is none is refused", (400, "InvalidParameterValue"), aws.image, name="arch", snapshot=snapshot, Architecture="amd64")
    for what, ebs, code in ("an encrypted flag", {"SnapshotId": snapshot, "Encrypted": False}, "InvalidBlockDeviceMapping"), ("a small volume", {"SnapshotId": snapshot, "VolumeSize": 2}, "InvalidBlockDeviceMapping"), \
            ("no snapshot", {"VolumeSize": 3}, "InvalidBlockDeviceMapping"), ("a snapshot that is none", {"SnapshotId": "snap-0123456789abcdef0"}, "InvalidSnapshot.NotFound"):
        refused(f"a root device with {what} is refused", (400, code), aws.image, name="root", snapshot=snapshot, BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": ebs}])
    refused("a snapshot that is pending is refused", (400, "IncorrectState"), aws.image, name="root", snapshot=aws.start(1)["SnapshotId"])
    refused("an image that never was is not found", NO_IMAGE, described, aws=aws, image="ami-0123456789abcdef0")
    refused("an invalid image ID is refused", (400, "InvalidAMIID.Malformed"), described, aws=aws, image="node")
    ec2.deregister_image(ImageId=image)
    refused("a deregistered image is not found", NO_IMAGE, described, aws=aws, image=image)
    case("its name is free again", aws.image("node 1", snapshot) != image)


def listing(aws):
    ec2, snapshot = aws.client("ec2"), aws.made({0: content(0)})
    aws.knobs(pending_image=2)
    image = aws.image("late", snapshot)
    seen = [described(aws, image)["State"] for _ in range(4)]
    case("an image is pending, then available", seen == ["pending", "pending", "available", "available"], seen)
    aws.knobs(invisible=1)
    hidden = aws.image("hidden", snapshot)
    refused("an image right after its registration may not be found", NO_IMAGE, described, aws=aws, image=hidden)
    case("a moment later it is", described(aws, hidden)["Name"] == "hidden")
    aws.knobs(describe_page=3)
    for number in range(6):
        aws.image(f"page {number}", snapshot, TagSpecifications=[{"ResourceType": "image", "Tags": [{"Key": "family", "Value": f"f*{number % 2}"}]}])

    def named(**asked):
        return sorted(one["Name"] for page in ec2.get_paginator("describe_images").paginate(Owners=["self"], **asked) for one in page["Images"])
    case("DescribeImages has pages", len(ec2.describe_images(Owners=["self"])["Images"]) == 3 and len(named()) == 8, named())
    case("filters let through what has the tag", named(Filters=[{"Name": "tag:family", "Values": ["f\\*1"]}]) == ["page 1", "page 3", "page 5"])
    case("all filters must hold", named(Filters=[{"Name": "tag:family", "Values": ["f*"]}, {"Name": "name", "Values": ["page 4", "late"]}]) == ["page 4"])
    refused("a filter that is none is refused", (400, "InvalidParameterValue"), ec2.describe_images, Filters=[{"Name": "colour", "Values": ["red"]}])
    names = {one["SnapshotId"] for page in ec2.get_paginator("describe_snapshots").paginate(OwnerIds=["self"], Filters=[{"Name": "status", "Values": ["completed"]}]) for one in page["Snapshots"]}
    case("DescribeSnapshots filters by status", names == {snapshot}, names)
    ec2.create_tags(Resources=[snapshot, image], Tags=[{"Key": "k", "Value": "v"}])
    case("CreateTags tags images and snapshots", {"Key": "k", "Value": "v"} in described(aws, image)["Tags"] and ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"][0]["Tags"] == [{"Key": "k", "Value": "v"}])
    ec2.delete_tags(Resources=[image], Tags=[{"Key": "k"}])
    case("DeleteTags takes them away", not described(aws, image).get("Tags"))
    refused("a tag of AWS's own is refused", (400, "InvalidParameterValue"), ec2.create_tags, Resources=[image], Tags=[{"Key": "aws:k", "Value": "v"}])


def deprecation(aws):
    ec2, image = aws.client("ec2"), aws.image("old", aws.made({0: content(0)}))
    now = datetime.datetime.now(datetime.UTC)
    at = (now + datetime.timedelta(days=30)).replace(second=40, microsecond=0)
    ec2.enable_image_deprecation(ImageId=image, DeprecateAt=at)
    wanted = (at + datetime.timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    case("EnableImageDeprecation rounds to the minute", described(aws, image).get("DeprecationTime") == wanted, (described(aws, image).get("DeprecationTime"), wanted))
    for what, days in ("in the past", -1), ("in 11 years", 11 * 366):
        refused(f"a deprecation {what} is refused", (400, "InvalidParameterValue"), ec2.enable_image_deprecation, ImageId=image, DeprecateAt=now + datetime.timedelta(days=days))
    ec2.modify_image_attribute(ImageId=image, LaunchPermission={"Add": [{"UserId": FRIEND}]})
    friend = aws.client("ec2", key=aws.control("keys", account=FRIEND))

    def seen(client, **asked):
        return image in [one["ImageId"] for one in client.describe_images(**asked)["Images"]]
    case("another account sees what is not deprecated yet", seen(friend))
    aws.control("image", id=image, deprecation="2020-01-01T00:00:00.000Z")
    case("another account sees no deprecated image", not seen(friend))
    case("with IncludeDeprecated it does", seen(friend, IncludeDeprecated=True))
    case("the owner sees it", seen(ec2) and seen(ec2, Owners=["self"]))
    ec2.disable_image_deprecation(ImageId=image)
    case("DisableImageDeprecation takes it back", "DeprecationTime" not in described(aws, image))


def sharing(aws):
    ec2, snapshot = aws.client("ec2"), aws.made({0: content(0)})
    image, friend = aws.image("shared", snapshot), aws.client("ec2", key=aws.control("keys", account=FRIEND))

    def permissions():
        return ec2.describe_image_attribute(ImageId=image, Attribute="launchPermission")["LaunchPermissions"]
    case("a new image has no launch permission", permissions() == [])
    refused("another account does not find it", NO_IMAGE, friend.describe_images, ImageIds=[image])
    organization = "arn:aws:organizations::123456789012:organization/o-exampleorgid"
    ec2.modify_image_attribute(ImageId=image, LaunchPermission={"Add": [{"UserId": FRIEND}, {"OrganizationArn": organization}]})
    case("ModifyImageAttribute adds launch permissions", permissions() == [{"UserId": FRIEND}, {"OrganizationArn": organization}], permissions())
    ec2.modify_image_attribute(ImageId=image, Attribute="launchPermission", OperationType="add", UserIds=[FRIEND])
    case("the same twice is there once", len(permissions()) == 2, permissions())
    case("another account finds it then", friend.describe_images(ImageIds=[image])["Images"][0]["OwnerId"] == "123456789012")
    refused("another account may not deregister it", (403, "AuthFailure"), friend.deregister_image, ImageId=image)
    refused("another account may not see its permissions", (403, "AuthFailure"), friend.describe_image_attribute, ImageId=image, Attribute="launchPermission")
    refused("an account that is none is refused", (400, "InvalidAMIAttributeItemValue"), ec2.modify_image_attribute, ImageId=image, LaunchPermission={"Add": [{"UserId": "12"}]})
    ec2.modify_image_attribute(ImageId=image, LaunchPermission={"Remove": [{"OrganizationArn": organization}]})
    case("ModifyImageAttribute removes them", permissions() == [{"UserId": FRIEND}])

    def volumes():
        return ec2.describe_snapshot_attribute(SnapshotId=snapshot, Attribute="createVolumePermission")["CreateVolumePermissions"]
    case("a new snapshot is not shared", volumes() == [])
    ec2.modify_snapshot_attribute(SnapshotId=snapshot, Attribute="createVolumePermission", CreateVolumePermission={"Add": [{"UserId": FRIEND}]})
    ec2.modify_snapshot_attribute(SnapshotId=snapshot, Attribute="createVolumePermission", OperationType="add", GroupNames=["all"])
    case("ModifySnapshotAttribute shares it", volumes() == [{"UserId": FRIEND}, {"Group": "all"}], volumes())
    refused("a public snapshot cannot be a parent", (400, "ValidationException"), aws.start, ParentSnapshotId=snapshot)
    case("another account describes it", len(friend.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"]) == 1)
    refused("another account may not delete it", (403, "UnauthorizedOperation"), friend.delete_snapshot, SnapshotId=snapshot)
    ec2.modify_snapshot_attribute(SnapshotId=snapshot, Attribute="createVolumePermission", CreateVolumePermission={"Remove": [{"Group": "all"}]})
    case("and takes it back", volumes() == [{"UserId": FRIEND}], volumes())
    hidden = aws.made({0: content(0)}, Encrypted=True)
    for who in {"UserIds": [FRIEND]}, {"GroupNames": ["all"]}:
        refused(f"a snapshot by AWS's own key is not shared with {list(who.values())[0][0]}", (400, "InvalidParameter"), ec2.modify_snapshot_attribute, SnapshotId=hidden, Attribute="createVolumePermission", OperationType="add", **who)


def public(aws):
    ec2, image = aws.client("ec2"), aws.image("public", aws.made({0: content(0)}))
    everyone = {"Add": [{"Group": "all"}]}
    case("public images are blocked at first", ec2.get_image_block_public_access_state()["ImageBlockPublicAccessState"] == "block-new-sharing")
    refused("no image becomes public then", (400, "OperationNotPermitted"), ec2.modify_image_attribute, ImageId=image, LaunchPermission=everyone)
    ec2.disable_image_block_public_access()
    case("that can be turned off", ec2.get_image_block_public_access_state()["ImageBlockPublicAccessState"] == "unblocked")
    ec2.modify_image_attribute(ImageId=image, LaunchPermission=everyone)
    case("an image becomes public then", described(aws, image)["Public"] is True)
    case("the setting is that of a region", aws.client("ec2", OTHER).get_image_block_public_access_state()["ImageBlockPublicAccessState"] == "block-new-sharing")
    late = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3 * 366)
    refused("a public image is deprecated within 2 years", (400, "InvalidParameterValue"), ec2.enable_image_deprecation, ImageId=image, DeprecateAt=late)
    ec2.enable_image_block_public_access(ImageBlockPublicAccessState="block-new-sharing")
    case("what is public stays so", described(aws, image)["Public"] is True)
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    own, default = (aws.image(name, aws.made({0: content(0)}, Encrypted=True, **asked)) for name, asked in (("own key", {"KmsKeyArn": key}), ("AWS's key", {})))
    ec2.disable_image_block_public_access()
    refused("an encrypted image does not become public", (400, "InvalidParameter"), ec2.modify_image_attribute, ImageId=own, LaunchPermission=everyone)
    ec2.modify_image_attribute(ImageId=own, LaunchPermission={"Add": [{"UserId": FRIEND}]})
    refused("an image by AWS's own key cannot be shared", (400, "InvalidParameter"), ec2.modify_image_attribute, ImageId=default, LaunchPermission={"Add": [{"UserId": FRIEND}]})


def copies(aws):
    ec2, there, snapshot = aws.client("ec2"), aws.client("ec2", OTHER), aws.made({0: content(0), 9: content(9)})
    image = aws.image("here", snapshot, BootMode="uefi", ImdsSupport="v2.0", TagSpecifications=[{"ResourceType": "image", "Tags": [{"Key": "of", "Value": "here"}]}])
    ec2.modify_image_attribute(ImageId=image, LaunchPermission={"Add": [{"UserId": FRIEND}]})
    ec2.enable_image_deprecation(ImageId=image, DeprecateAt=datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3))
    aws.knobs(pending_image=2)
    asked = {"Name": "there", "SourceRegion": REGION, "SourceImageId": image, "ClientToken": "one"}
    copy = there.copy_image(**asked, TagSpecifications=[{"ResourceType": kind, "Tags": [{"Key": "is", "Value": kind}]} for kind in ("image", "snapshot")])["ImageId"]
    seen = [described(aws, copy, OTHER)["State"] for _ in range(3)]
    case("a copy is pending, then available", seen == ["pending", "pending", "available"], seen)
    one = described(aws, copy, OTHER)
    case("a copy has the fields of its source", (one["Name"], one["Architecture"], one["BootMode"], one["ImdsSupport"], one["EnaSupport"]) == ("there", "x86_64", "uefi", "v2.0", True), one)
    case("but not its tags and deprecation", one["Tags"] == [{"Key": "is", "Value": "image"}] and "DeprecationTime" not in one, one)
    case("nor its launch permissions", there.describe_image_attribute(ImageId=copy, Attribute="launchPermission")["LaunchPermissions"] == [])
    own = one["BlockDeviceMappings"][0]["Ebs"]["SnapshotId"]
    tags = there.describe_snapshots(SnapshotIds=[own])["Snapshots"][0].get("Tags")
    case("a copy has a separate snapshot in its region", own != snapshot and tags == [{"Key": "is", "Value": "snapshot"}], (own, tags))
    case("with the same blocks", [block["BlockIndex"] for block in aws.client("ebs", OTHER).list_snapshot_blocks(SnapshotId=own)["Blocks"]] == [0, 9])
    again = {**asked, "TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": "is", "Value": kind}]} for kind in ("image", "snapshot")]}
    case("the same ClientToken gives the same copy", there.copy_image(**again)["ImageId"] == copy)
    refused("the same ClientToken with other parameters is refused", (400, "IdempotentParameterMismatch"), there.copy_image, **{**asked, "Name": "other"})
    case("CopyImageTags brings the tags", {"Key": "of", "Value": "here"} in described(aws, there.copy_image(**{**asked, "ClientToken": "two", "Name": "tags"}, CopyImageTags=True)["ImageId"], OTHER)["Tags"])
    refused("an image that never was is not copied", NO_IMAGE, there.copy_image, Name="none", SourceRegion=REGION, SourceImageId="ami-0123456789abcdef0")
    refused("an image is looked for in its region", NO_IMAGE, there.copy_image, Name="none", SourceRegion="us-east-1", SourceImageId=image)
    aws.knobs(pending_image=1000)
    for number in range(20 - sum(one["State"] == "pending" for one in there.describe_images(Owners=["self"])["Images"])):
        there.copy_image(Name=f"many {number}", SourceRegion=REGION, SourceImageId=image)
    refused("more than 20 copies at once are refused", (400, "ResourceLimitExceeded"), there.copy_image, Name="many", SourceRegion=REGION, SourceImageId=image)
    pending = aws.image("pending", snapshot)
    refused("an image that is pending is not copied", (400, "InvalidAMIID.Unavailable"), aws.client("ec2", "us-east-1").copy_image, Name="none", SourceRegion=REGION, SourceImageId=pending)


def copied_keys(aws):
    there, image = aws.client("ec2", OTHER), aws.image("here", aws.made({0: content(0)}))
    key = aws.client("kms", OTHER).create_key()["KeyMetadata"]["Arn"]
    asked = {"SourceRegion": REGION, "SourceImageId": image}

    def key_of(copy):
        ebs = described(aws, copy, OTHER)["BlockDeviceMappings"][0]["Ebs"]
        one = there.describe_snapshots(SnapshotIds=[ebs["SnapshotId"]])["Snapshots"][0]
        return ebs["Encrypted"], one["Encrypted"], one.get("KmsKeyId")
    case("a plain copy is plain", key_of(there.copy_image(Name="plain", **asked)["ImageId"]) == (False, False, None))
    case("a copy is encrypted by the key that is named", key_of(there.copy_image(Name="key", Encrypted=True, KmsKeyId=key, **asked)["ImageId"]) == (True, True, key))
    there.enable_ebs_encryption_by_default()
    case("a copy is encrypted where that is the default", key_of(there.copy_image(Name="default", **asked)["ImageId"])[:2] == (True, True))
    there.disable_ebs_encryption_by_default()
    bad = there.copy_image(Name="bad", Encrypted=True, KmsKeyId=key[:-12] + "000000000000", **asked)["ImageId"]
    one = described(aws, bad, OTHER)
    case("a copy by a key that is not there fails later, and says why", one["State"] == "failed" and bool(one.get("StateReason", {}).get("Message")), one)


def deleting(aws):
    ec2, snapshot = aws.client("ec2"), aws.made({0: content(0)})
    image = aws.image("using", snapshot)
    message = refused("a snapshot that an image uses is not deleted", (400, "InvalidSnapshot.InUse"), ec2.delete_snapshot, SnapshotId=snapshot)
    case("and the refusal names the image", image in message, message)
    run = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, InstanceType="t3.micro")["Instances"][0]["InstanceId"]
    found = [one["InstanceId"] for each in ec2.describe_instances(Filters=[{"Name": "image-id", "Values": [image]}])["Reservations"] for one in each["Instances"]]
    case("DescribeInstances finds what runs an image", found == [run], found)
    ec2.deregister_image(ImageId=image)
    case("DeregisterImage leaves the snapshot", ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"][0]["State"] == "completed")
    ec2.delete_snapshot(SnapshotId=snapshot)
    refused("a deleted snapshot is not found", (400, "InvalidSnapshot.NotFound"), ec2.describe_snapshots, SnapshotIds=[snapshot])
    refused("a name that is none is refused", (400, "InvalidSnapshotID.Malformed"), ec2.delete_snapshot, SnapshotId="disk")


def dry_runs(aws):
    ec2, snapshot = aws.client("ec2"), aws.made({0: content(0)})
    image = aws.image("dry", snapshot)
    free = aws.made({0: content(1)})
    calls = {
        "register_image": {"Name": "never", "RootDeviceName": "/dev/xvda", "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot}}]},
        "copy_image": {"Name": "never", "SourceRegion": REGION, "SourceImageId": image}, "deregister_image": {"ImageId": image}, "delete_snapshot": {"SnapshotId": free},
        "create_tags": {"Resources": [image], "Tags": [{"Key": "k", "Value": "v"}]}, "delete_tags": {"Resources": [image], "Tags": [{"Key": "k"}]}, "modify_image_attribute": {"ImageId": image, "LaunchPermission": {"Add": [{"UserId": FRIEND}]}},
        "enable_image_deprecation": {"ImageId": image, "DeprecateAt": "2035-01-01T00:00:00Z"}, "describe_images": {}, "describe_snapshots": {}, "describe_instances": {},
        "describe_image_attribute": {"ImageId": image, "Attribute": "launchPermission"}, "describe_snapshot_attribute": {"SnapshotId": snapshot, "Attribute": "createVolumePermission"},
        "modify_snapshot_attribute": {"SnapshotId": snapshot, "Attribute": "createVolumePermission", "OperationType": "add", "UserIds": [FRIEND]},
        "get_image_block_public_access_state": {}, "disable_image_block_public_access": {}, "disable_image_deprecation": {"ImageId": image},
        "enable_image_block_public_access": {"ImageBlockPublicAccessState": "block-new-sharing"}, "get_ebs_encryption_by_default": {},
    }
    before = aws.state()
    for name, asked in calls.items():
        refused(f"a dry run of {name} is told by 412", (412, "DryRunOperation"), getattr(ec2, name), DryRun=True, **asked)
    case("dry runs change nothing", aws.state() == before and not described(aws, image).get("DeprecationTime"))
    refused("a dry run tells of other faults too", (400, "InvalidAMIName.Duplicate"), aws.image, name="dry", snapshot=snapshot, DryRun=True)


def parameters(aws):
    ssm, image = aws.client("ssm"), aws.image("parameter", aws.made({0: content(0)}))
    asked = {"Name": "/images/node", "Type": "String", "DataType": "aws:ec2:image"}
    ssm.put_parameter(Value=image, **asked)
    one = ssm.get_parameter(Name="/images/node")["Parameter"]
    case("a parameter holds an image", (one["Value"], one["DataType"], one["Version"]) == (image, "aws:ec2:image", 1), one)
    refused("a second time it must be overwritten", (400, "ParameterAlreadyExists"), ssm.put_parameter, Value=image, **asked)
    case("Overwrite counts the version", ssm.put_parameter(Value=image, Overwrite=True, **asked)["Version"] == 2)
    refused("a parameter that is none is not found", (400, "ParameterNotFound"), ssm.get_parameter, Name="/images/none")
    refused("the type wants the name of an image", (400, "ValidationException"), ssm.put_parameter, **{**asked, "Name": "/images/text"}, Value="node")
    ssm.put_parameter(**{**asked, "Name": "/images/gone"}, Value="ami-0123456789abcdef0")
    refused("an image that is not there is taken, and later there is no parameter", (400, "ParameterNotFound"), ssm.get_parameter, Name="/images/gone")
    identity = aws.client("sts").get_caller_identity()
    case("GetCallerIdentity tells the account", identity["Account"] == "123456789012" and identity["Arn"].startswith("arn:aws:iam::123456789012:"), identity)


def throttling(aws):
    image = aws.image("busy", aws.made({0: content(0)}))
    aws.knobs(throttle={"DescribeImages": 0.1, "GetParameter": 0.1})
    refused("EC2 throttles by 503", (503, "RequestLimitExceeded"), described, aws=aws, image=image)
    refused("SSM throttles by 400", (400, "ThrottlingException"), aws.client("ssm").get_parameter, Name="/x")
    aws.knobs(every={"RegisterImage": {"n": 1, "status": 500, "code": "InternalError"}})
    refused("a failure of EC2 is 500", (500, "InternalError"), aws.image, name="fails", snapshot="snap-0123456789abcdef0")


PARTS = (registering, listing, deprecation, sharing, public, copies, copied_keys, deleting, dry_runs, parameters, throttling)
