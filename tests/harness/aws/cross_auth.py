"""AWS's documented behavior of signatures, expiring keys and policies, tested with boto3 against the stand-in.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_aws-signing.html, and the service authorization reference of EBS, EC2 and Systems Manager.
"""

import datetime
import unittest.mock

from harness.aws.asks import ACCOUNT, BLOCK, REGION, case, checksum, content, refused

SNAPSHOTS = f"arn:aws:ec2:{REGION}::snapshot/*"
# Errors of each service for an unknown key, a wrong signature, and an expired key.
UNKNOWN = {"ebs": (403, "UnrecognizedClientException"), "ec2": (401, "AuthFailure"), "ssm": (400, "UnrecognizedClientException"), "sts": (403, "InvalidClientTokenId")}
WRONG = {"ebs": (403, "InvalidSignatureException"), "ec2": (401, "AuthFailure"), "ssm": (400, "InvalidSignatureException"), "sts": (403, "SignatureDoesNotMatch")}
EXPIRED = {"ebs": (403, "ExpiredTokenException"), "ec2": (400, "RequestExpired"), "ssm": (400, "ExpiredTokenException"), "sts": (403, "ExpiredToken")}


def simple(aws, service, key):
    """A call of that service that any good key may do."""
    method, asked = {"ebs": ("start_snapshot", {"VolumeSize": 1}), "ec2": ("describe_images", {}), "ssm": ("describe_parameters", {}), "sts": ("get_caller_identity", {})}[service]
    return lambda: getattr(aws.client(service, key=key), method)(**asked)


def signatures(aws):
    key = aws.control("keys")
    for token in False, True:
        good = aws.control("keys", token=token)
        aws.knobs(auth=True)
        for service in UNKNOWN:
            case(f"{service} takes a good {'key with a token' if token else 'key'}", simple(aws, service, good)()["ResponseMetadata"]["HTTPStatusCode"] < 300)
    stale = dict(good, Token="token-0")
    for service in UNKNOWN:
        refused(f"{service} refuses a key that is none", UNKNOWN[service], simple(aws, service, dict(key, AccessKeyId="AKIANONE000000000000")))
        refused(f"{service} refuses a wrong secret", WRONG[service], simple(aws, service, dict(key, SecretAccessKey="x" * 40)))
        refused(f"{service} refuses the token of another key", UNKNOWN[service], simple(aws, service, stale))
    late = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=16)
    with unittest.mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: late):
        refused("a signature of a quarter of an hour ago is refused", (403, "InvalidSignatureException"), simple(aws, "ebs", key))
        refused("EC2 calls it a request that expired", (400, "RequestExpired"), simple(aws, "ec2", key))


def altered(aws):
    """Changes after signing are detected."""
    key = aws.control("keys")
    name = aws.start(1)["SnapshotId"]
    aws.knobs(auth=True)
    client, block = aws.client("ebs", key=key), content(0)
    asked = {"SnapshotId": name, "BlockIndex": 3, "BlockData": block, "DataLength": BLOCK, "Checksum": checksum(block), "ChecksumAlgorithm": "SHA256"}

    def index(request, **_):
        request.url = request.url.replace("/blocks/3", "/blocks/4")

    def header(request, **_):
        request.headers["x-amz-Checksum"] = checksum(b"other")

    def added(request, **_):
        request.headers["x-amz-Progress"] = "5"

    def body(request, **_):
        request.body = content(1)

    def unsigned(request, **_):
        del request.headers["Authorization"]
    for change in index, header, added:
        client.meta.events.register("before-send.ebs.PutSnapshotBlock", change)
        refused(f"another {change.__name__} than was signed is refused", WRONG["ebs"], client.put_snapshot_block, **asked)
        client.meta.events.unregister("before-send.ebs.PutSnapshotBlock", change)
    client.meta.events.register("before-send.ebs.PutSnapshotBlock", body)
    refused("another block is refused by its checksum, which is signed", (400, "ValidationException"), client.put_snapshot_block, **asked)
    client.meta.events.unregister("before-send.ebs.PutSnapshotBlock", body)
    client.meta.events.register("before-send.ebs.PutSnapshotBlock", unsigned)
    refused("a request without a signature is refused", (403, "MissingAuthenticationTokenException"), client.put_snapshot_block, **asked)
    client.meta.events.unregister("before-send.ebs.PutSnapshotBlock", unsigned)
    case("what was not changed is taken", client.put_snapshot_block(**asked)["Checksum"] == checksum(block))


def expiring(aws):
    keys = {service: aws.control("keys", token=True) for service in EXPIRED}
    lasting = aws.control("keys")
    aws.knobs(auth=True, expire_after=2)
    for service, key in keys.items():
        for _ in range(2):
            simple(aws, service, key)()
        refused(f"{service} refuses a key that expired", EXPIRED[service], simple(aws, service, key))
        refused(f"{service} goes on to refuse it", EXPIRED[service], simple(aws, service, key))
    for _ in range(4):
        simple(aws, "ebs", lasting)()
    case("a key without a token does not expire", True)


def calls(aws):
    """Requests of each action: action -> (method, parameters). Those of EC2 are dry runs."""
    snapshot, pending, closing = aws.made({0: content(0)}), aws.start(1)["SnapshotId"], iter([aws.start(1)["SnapshotId"] for _ in range(5)])
    child = aws.made({}, ParentSnapshotId=snapshot)
    free, image, token = aws.made({}), aws.image("used", snapshot), aws.indexes(snapshot)[0]
    mapping = [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": snapshot}}]
    tags = [{"Key": "k", "Value": "v"}]
    block = {"BlockIndex": 0, "DataLength": BLOCK, "BlockData": content(0), "Checksum": checksum(content(0)), "ChecksumAlgorithm": "SHA256"}
    return {
        "ebs:StartSnapshot": ("start_snapshot", {"VolumeSize": 1}), "ebs:PutSnapshotBlock": ("put_snapshot_block", {"SnapshotId": pending, **block}),
        "ebs:CompleteSnapshot": ("complete_snapshot", lambda: {"SnapshotId": next(closing), "ChangedBlocksCount": 0}),
        "ebs:ListSnapshotBlocks": ("list_snapshot_blocks", {"SnapshotId": snapshot}), "ebs:GetSnapshotBlock": ("get_snapshot_block", {"SnapshotId": snapshot, "BlockIndex": 0, "BlockToken": token}),
        "ebs:ListChangedBlocks": ("list_changed_blocks", {"FirstSnapshotId": snapshot, "SecondSnapshotId": child}),
        "ec2:RegisterImage": ("register_image", {"Name": "new", "RootDeviceName": "/dev/xvda", "BlockDeviceMappings": mapping}),
        "ec2:CopyImage": ("copy_image", {"Name": "new", "SourceRegion": REGION, "SourceImageId": image}), "ec2:DeregisterImage": ("deregister_image", {"ImageId": image}),
        "ec2:DeleteSnapshot": ("delete_snapshot", {"SnapshotId": free}), "ec2:CreateTags": ("create_tags", {"Resources": [image], "Tags": tags}), "ec2:DeleteTags": ("delete_tags", {"Resources": [image], "Tags": tags}),
        "ec2:ModifyImageAttribute": ("modify_image_attribute", {"ImageId": image, "LaunchPermission": {"Add": [{"UserId": "210987654321"}]}}),
        "ec2:DescribeImageAttribute": ("describe_image_attribute", {"ImageId": image, "Attribute": "launchPermission"}),
        "ec2:ModifySnapshotAttribute": ("modify_snapshot_attribute", {"SnapshotId": snapshot, "Attribute": "createVolumePermission", "OperationType": "add", "UserIds": ["210987654321"]}),
        "ec2:DescribeSnapshotAttribute": ("describe_snapshot_attribute", {"SnapshotId": snapshot, "Attribute": "createVolumePermission"}),
        "ec2:EnableImageDeprecation": ("enable_image_deprecation", {"ImageId": image, "DeprecateAt": "2035-01-01T00:00:00Z"}), "ec2:DescribeImages": ("describe_images", {}),
        "ec2:DescribeSnapshots": ("describe_snapshots", {}), "ec2:DescribeInstances": ("describe_instances", {}), "ec2:GetEbsEncryptionByDefault": ("get_ebs_encryption_by_default", {}),
        "ec2:GetImageBlockPublicAccessState": ("get_image_block_public_access_state", {}),
        "ssm:PutParameter": ("put_parameter", {"Name": "/k", "Value": "v", "Type": "String", "Overwrite": True}), "ssm:GetParameter": ("get_parameter", {"Name": "/k"}),
    }


def statement(effect, action, resource="*", **more):
    return {"Effect": effect, "Action": action, "Resource": resource} | more


def keyed(aws, *statements):
    return aws.control("keys", policies=[{"Version": "2012-10-17", "Statement": list(statements)}])


def denied(service):
    return {"ebs": (403, "AccessDeniedException", "UNAUTHORIZED_ACCOUNT"), "ec2": (403, "UnauthorizedOperation"), "ssm": (400, "AccessDeniedException")}[service]


def policies(aws):
    wanted = calls(aws)
    aws.knobs(auth=True)
    nothing, everything = keyed(aws), keyed(aws, statement("Allow", "*"))
    for action, (method, asked) in wanted.items():
        service = action.split(":")[0]
        dry = {"DryRun": True} if service == "ec2" else {}

        def ask(key):
            return lambda: getattr(aws.client(service, key=key), method)(**(asked() if callable(asked) else asked), **dry)
        message = refused(f"{action} is refused without a policy", denied(service), ask(nothing))
        case("and the refusal names the action", action in message, message)
        refused(f"{action} is refused by a Deny despite an Allow", denied(service), ask(keyed(aws, statement("Allow", "*"), statement("Deny", [action]))))
        refused(f"{action} is refused by a policy for all others of its service", denied(service), ask(keyed(aws, statement("Allow", [one for one in wanted if one != action]))))
        for what, key in ("its own policy", keyed(aws, statement("Allow", [action]))), ("a policy for everything", everything):
            if service == "ec2":
                refused(f"{action} is allowed by {what}", (412, "DryRunOperation"), ask(key))
            else:
                case(f"{action} is allowed by {what}", ask(key)()["ResponseMetadata"]["HTTPStatusCode"] < 300)


def conditions(aws):
    plain, tagged = aws.made({}), aws.made({}, Tags=[{"Key": "team", "Value": "images"}])
    aws.knobs(auth=True)
    start = statement("Allow", "ebs:StartSnapshot", SNAPSHOTS, Condition={"StringEquals": {"aws:RequestTag/team": "images"}})
    tags = {"Tags": [{"Key": "team", "Value": "images"}]}
    create = statement("Allow", "ec2:CreateTags", SNAPSHOTS, Condition={"StringEquals": {"ec2:CreateAction": "StartSnapshot"}})
    both, alone = aws.client("ebs", key=keyed(aws, start, create)), aws.client("ebs", key=keyed(aws, start))
    case("a condition on a tag of the request holds", both.start_snapshot(VolumeSize=1, **tags)["Status"] == "pending")
    refused("without the tag it does not", denied("ebs"), both.start_snapshot, VolumeSize=1)
    refused("with another value neither", denied("ebs"), both.start_snapshot, VolumeSize=1, Tags=[{"Key": "team", "Value": "x"}])
    message = refused("tags at the start need ec2:CreateTags", denied("ebs"), alone.start_snapshot, VolumeSize=1, **tags)
    case("and the refusal says so", "ec2:CreateTags" in message, message)
    own = aws.client("ebs", key=keyed(aws, statement("Allow", "ebs:ListSnapshotBlocks", SNAPSHOTS, Condition={"StringEquals": {"aws:ResourceTag/team": "images"}})))
    case("a condition on a tag of the snapshot holds", own.list_snapshot_blocks(SnapshotId=tagged)["Blocks"] == [])
    refused("a snapshot without the tag is refused", denied("ebs"), own.list_snapshot_blocks, SnapshotId=plain)
    one = aws.client("ebs", key=keyed(aws, statement("Allow", "ebs:*", f"arn:aws:ec2:{REGION}::snapshot/{plain}")))
    case("a policy for one snapshot allows that", one.list_snapshot_blocks(SnapshotId=plain)["Blocks"] == [])
    refused("and no other", denied("ebs"), one.list_snapshot_blocks, SnapshotId=tagged)
    elsewhere = aws.client("ebs", key=keyed(aws, statement("Allow", "ebs:*", "arn:aws:ec2:eu-west-1::snapshot/*")))
    refused("a policy for another region does not", denied("ebs"), elsewhere.list_snapshot_blocks, SnapshotId=plain)
    parameter = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/images/*"
    ssm = aws.client("ssm", key=keyed(aws, statement("Allow", "ssm:PutParameter", parameter)))
    put = {"Value": "v", "Type": "String"}
    case("a policy for parameters below a path allows those", ssm.put_parameter(Name="/images/a", **put)["Version"] == 1)
    refused("and no others", denied("ssm"), ssm.put_parameter, Name="/other", **put)
    refused("a parameter of images needs ec2:DescribeImages", denied("ssm"), ssm.put_parameter, Name="/images/b", Type="String", Value="ami-0123456789abcdef0", DataType="aws:ec2:image")
    ec2 = aws.client("ec2", key=keyed(aws, statement("Allow", "ec2:RegisterImage")))
    mapping = {"RootDeviceName": "/dev/xvda", "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": plain}}]}
    refused("an image without tags needs RegisterImage only", (412, "DryRunOperation"), ec2.register_image, Name="plain", DryRun=True, **mapping)
    message = refused("one with tags needs ec2:CreateTags", denied("ec2"), ec2.register_image, Name="tags", TagSpecifications=[{"ResourceType": "image", **tags}], **mapping)
    case("and the refusal of EC2 says so", "ec2:CreateTags" in message, message)


def keys_of_kms(aws):
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    name = aws.start(1, Encrypted=True, KmsKeyArn=key)["SnapshotId"]
    aws.knobs(auth=True)
    ebs = statement("Allow", "ebs:*")
    without = aws.client("ebs", key=keyed(aws, ebs))
    wanted = (403, "AccessDeniedException", "DEPENDENCY_ACCESS_DENIED")
    refused("an encrypted start needs permissions of KMS", wanted, without.start_snapshot, VolumeSize=1, Encrypted=True, KmsKeyArn=key)
    block = {"SnapshotId": name, "BlockIndex": 0, "DataLength": BLOCK, "BlockData": content(0), "Checksum": checksum(content(0)), "ChecksumAlgorithm": "SHA256"}
    refused("so does a put", wanted, without.put_snapshot_block, **block)
    actions = ["kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:CreateGrant", "kms:Decrypt"]
    case("with them it is allowed", aws.client("ebs", key=keyed(aws, ebs, statement("Allow", actions, key))).put_snapshot_block(**block)["Checksum"] == checksum(content(0)))


PARTS = (signatures, altered, expiring, policies, conditions, keys_of_kms)
