"""The IAM policy in docs/publish.md: publishing works with it, and all of it is required."""

import copy
import json
import pathlib
import re

from harness.aws import lab
from harness.paths import ROOT
from harness.report import case

HERE = pathlib.Path(__file__).resolve().parent
POLICY = HERE / "policy.json"
PAGE = ROOT / "docs/publish.md"
OPTIONS = ["--copy-to", lab.OTHERS[0], "--launch-permission", "210987654321", "--deprecate-at", "2027-11-01T00:00:00Z", "--ssm-parameter", "/images/small"]


class Right:
    """The policy, with or without an action, and a key that has it."""

    def __init__(self, judge, without=None):
        self.judge, self.service, self.run, self.store = judge, judge.service, judge.program.run, judge.program.store()
        policy = copy.deepcopy(json.loads(POLICY.read_text()))
        for statement in policy["Statement"]:
            statement["Action"] = [action for action in statement["Action"] if action != without]
        self.service.reset()
        self.key = self.service.key(policies=[policy])

    def publish(self, *arguments):
        """Publishes with exactly these rights."""
        self.service.knobs(auth=True)
        done = self.run(*arguments, store=self.store, key=self.key)
        self.service.knobs(auth=False)
        return done

    # Steps that need permissions. Each returns the result of its last command; preceding ones run without checks.

    def first(self):
        return self.publish(self.judge.disks[0], *OPTIONS)

    def next(self):
        self.run(self.judge.disks[0], store=self.store)
        return self.publish(self.judge.disks[1])

    def public(self):
        self.service.client("ec2").disable_image_block_public_access()
        return self.publish(self.judge.disks[0], "--launch-permission", "public", "--yes")

    def encrypted(self):
        key = self.service.client("kms").create_key()["KeyMetadata"]["Arn"]
        return self.publish(self.judge.disks[0], "--kms-key", key)

    def collect(self):
        for image in self.judge.disks[:2]:
            self.run(image, store=self.store)
            lab.wait_for_next_second()
        return self.publish("gc", "--family", "small", "--keep", "1", "--yes")


# Each action, by the step that needs it.
NEEDED = {
    Right.first: [
        "ec2:DescribeImages", "ec2:DescribeSnapshots", "ec2:GetEbsEncryptionByDefault", "ebs:StartSnapshot", "ebs:PutSnapshotBlock", "ebs:CompleteSnapshot",
        "ebs:ListSnapshotBlocks", "ebs:GetSnapshotBlock", "ec2:RegisterImage", "ec2:CreateTags", "ec2:CopyImage", "ec2:DescribeImageAttribute",
        "ec2:ModifyImageAttribute", "ec2:EnableImageDeprecation", "ssm:GetParameter", "ssm:PutParameter",
    ],
    Right.next: ["ebs:ListChangedBlocks"],
    Right.public: ["ec2:GetImageBlockPublicAccessState"],
    Right.encrypted: ["kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:CreateGrant", "kms:Decrypt"],
    Right.collect: ["ec2:DescribeInstances", "ec2:DescribeSnapshotAttribute", "ec2:DeregisterImage", "ec2:DeleteSnapshot"],
}


def rights(judge):
    policy = json.loads(POLICY.read_text())
    actions = sorted(action for statement in policy["Statement"] for action in statement["Action"])
    case("the page shows the policy", POLICY.read_text() in re.findall(r"^```json\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL), PAGE)
    case("each action of the policy is needed by a step", actions == sorted(sum(NEEDED.values(), [])), actions)
    for step in NEEDED:
        done = step(Right(judge))
        case(f"{step.__name__}: the policy is enough", done.code == 0, done)
    done = Right.first(Right(judge, without="ebs:StartSnapshot"))
    case("what is denied leads to the page that shows the policy", "docs/publish.md" in done.err, done)
    if judge.everything:
        for step, needed in NEEDED.items():
            for action in needed:
                done = step(Right(judge, without=action))
                good = done.code == 1 and action in done.err and "hint:" in done.err
                case(f"{step.__name__}: without {action}, the message names it", good, done)
