"""Required permissions of a request, by AWS's service authorization reference: (action, resource, condition keys) for each part of it."""

import json
import re


def tag_context(tags, creates):
    context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    return context | {"aws:TagKeys": list(tags), "ec2:CreateAction": creates}


def resource_context(tags):
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()} | {f"ec2:ResourceTag/{key}": value for key, value in tags.items()}


class Needs:
    def __init__(self, world):
        self.world = world

    def of(self, request):
        if request.service == "ebs":
            return self.ebs(request)
        if request.service == "ec2":
            return self.ec2(request)
        if request.service == "ssm":
            return self.ssm(request)
        # The setting up of a test, and GetCallerIdentity, which needs no permission.
        return []

    def known(self, name):
        return self.world.snapshots.get(name) or self.world.images.get(name)

    def named(self, request, name):
        """The resource of a snapshot or image, with its tags."""
        one = self.known(name)
        kind = "snapshot" if name.startswith("snap-") else "image" if name.startswith("ami-") else "instance"
        arn = f"arn:aws:ec2:{request.region}:{request.account if kind == 'instance' else ''}:{kind}/{name}"
        return arn, resource_context(one.tags if one else {})

    def ebs(self, request):
        action = f"ebs:{request.action}"
        if request.action != "StartSnapshot":
            needs = [(action, *self.named(request, request.subject[0]))]
            if request.action == "ListChangedBlocks" and "firstSnapshotId" in request.query:
                needs.append((action, *self.named(request, request.query["firstSnapshotId"])))
            one = self.known(request.subject[0])
            if one and one.kms_key and request.action in ("PutSnapshotBlock", "GetSnapshotBlock"):
                needs.append(("kms:Decrypt", one.kms_key, {}))
            return needs
        try:
            asked = json.loads(request.body)
        except ValueError:
            return []
        resource = f"arn:aws:ec2:{request.region}::snapshot/*"
        tags = {tag["Key"]: tag["Value"] for tag in asked.get("Tags", [])}
        context = tag_context(tags, "StartSnapshot")
        needs = [(action, resource, context)]
        if tags:
            needs.append(("ec2:CreateTags", resource, context))
        parent = asked.get("ParentSnapshotId")
        if parent:
            needs.append((action, *self.named(request, parent)))
        key = asked.get("KmsKeyArn") or (self.known(parent).kms_key if parent and self.known(parent) else None)
        if key:
            needs += [(f"kms:{verb}", key, {}) for verb in ("DescribeKey", "GenerateDataKeyWithoutPlaintext", "CreateGrant")]
        return needs

    def ec2(self, request):
        action, form, region = f"ec2:{request.action}", request.form, request.region
        if re.match(r"(Describe|Get)", request.action) and not request.action.endswith("Attribute"):
            return [(action, "*", {})]
        makes = {"RegisterImage": "image", "CopyImage": "image"}.get(request.action)
        if not makes:
            names = [value for name, value in form.items() if re.fullmatch(r"ImageId|SnapshotId|ResourceId\.[0-9]+", name)]
            request_tags = form_tags(form, "Tag")
            context = tag_context(request_tags, "") if request_tags else {}
            context.pop("ec2:CreateAction", None)
            return [(action, arn, tags | context) for arn, tags in (self.named(request, name) for name in names)] or [(action, "*", {})]
        tags = form_tags(form, "TagSpecification.1.Tag")
        context = tag_context(tags, request.action)
        needs = [(action, f"arn:aws:ec2:{region}::image/*", context)]
        needs += [(action, *self.named(request, value)) for name, value in sorted(form.items()) if name.endswith(".Ebs.SnapshotId")]
        if request.action == "CopyImage":
            needs.append((action, f"arn:aws:ec2:{region}::snapshot/*", context))
        for number in range(1, 9):
            kind = form.get(f"TagSpecification.{number}.ResourceType")
            if kind:
                tags = form_tags(form, f"TagSpecification.{number}.Tag")
                needs.append(("ec2:CreateTags", f"arn:aws:ec2:{region}::{kind}/*", tag_context(tags, request.action)))
        return needs

    def ssm(self, request):
        asked = request.json
        names = asked.get("Names") or [asked.get("Name", "*")]
        needs = [(f"ssm:{request.action}", f"arn:aws:ssm:{request.region}:{request.account}:parameter/{name.lstrip('/')}", {}) for name in names]
        if request.action == "PutParameter" and asked.get("DataType") == "aws:ec2:image":
            needs.append(("ec2:DescribeImages", "*", {}))
        return needs


def form_tags(form, prefix):
    """The tags below a prefix of a query: PREFIX.1.Key, PREFIX.1.Value."""
    keys = {name: value for name, value in form.items() if re.fullmatch(re.escape(prefix) + r"\.[0-9]+\.Key", name)}
    return {value: form.get(name.removesuffix("Key") + "Value", "") for name, value in keys.items()}
