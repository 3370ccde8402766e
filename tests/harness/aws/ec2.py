"""EC2's actions on machine images and snapshots, on a World; all other actions are moto's.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/. Each method takes a request and its parameters and gives an answer, by the names of AWS's model.
"""

import datetime
import re

from harness.aws.describe import chosen, image_values, paged, parse_time, refuse, snapshot_values, tag_set
from harness.aws.world import BLOCK, Image, Snapshot

NAME = re.compile(r"[A-Za-z0-9()\[\] ./\-'@_]{3,128}")
KEPT = ("Architecture", "BootMode", "Description", "EnaSupport", "ImdsSupport", "Name", "RootDeviceName", "SriovNetSupport", "TpmSupport", "VirtualizationType")
CHOICES = {
    "Architecture": ("i386", "x86_64", "arm64", "x86_64_mac", "arm64_mac"), "BootMode": ("legacy-bios", "uefi", "uefi-preferred"),
    "ImdsSupport": ("v2.0",), "TpmSupport": ("v2.0",), "VirtualizationType": ("hvm", "paravirtual"),
}
COPIES = 20
YEARS = {True: 2, False: 10}


def tags_of(params, kind):
    """The tags of a TagSpecification for that kind."""
    wanted = [one for one in params.get("TagSpecifications", []) if one.get("ResourceType") == kind]
    return {tag["Key"]: tag.get("Value", "") for one in wanted for tag in one.get("Tags", [])}


class Ec2:
    def __init__(self, world, keys):
        self.world, self.keys = world, keys
        self.actions = {
            "RegisterImage": self.register, "DescribeImages": self.describe_images, "DeregisterImage": self.deregister, "CopyImage": self.copy,
            "DescribeImageAttribute": self.describe_image_attribute, "ModifyImageAttribute": self.modify_image_attribute,
            "EnableImageDeprecation": self.deprecate, "DisableImageDeprecation": self.undeprecate,
            "GetImageBlockPublicAccessState": self.public_access, "EnableImageBlockPublicAccess": self.block_public, "DisableImageBlockPublicAccess": self.unblock_public,
            "DescribeSnapshots": self.describe_snapshots, "DeleteSnapshot": self.delete_snapshot,
            "DescribeSnapshotAttribute": self.describe_snapshot_attribute, "ModifySnapshotAttribute": self.modify_snapshot_attribute,
        }
        self.tag_actions = {"CreateTags": self.create_tags, "DeleteTags": self.delete_tags}

    def mine(self, action, params):
        """Implementation of an action, or None for moto's."""
        if action in self.tag_actions:
            names = params.get("Resources", [])
            return self.tag_actions[action] if names and all(name.startswith(("ami-", "snap-")) for name in names) else None
        return self.actions.get(action)

    def image(self, request, name, owned=True):
        one = self.world.images.get(name)
        if not re.fullmatch(r"ami-[0-9a-f]{8,17}", name):
            raise refuse("InvalidAMIID.Malformed", f'Invalid id: "{name}"')
        if not one or one.region != request.region or not (one.account == request.account or self.may_launch(one, request.account)):
            raise refuse("InvalidAMIID.NotFound", f"The image id '[{name}]' does not exist")
        if owned and one.account != request.account:
            raise refuse("AuthFailure", f"Not authorized for image:{name}", 403)
        return one

    def may_launch(self, image, account):
        return image.public or {"UserId": account} in image.permissions

    def snapshot(self, request, name):
        one = self.world.snapshots.get(name)
        if not re.fullmatch(r"snap-[0-9a-f]{8,17}", name):
            raise refuse("InvalidSnapshotID.Malformed", f"Invalid id: \"{name}\"")
        if not one or one.region != request.region or not (one.account == request.account or {request.account, "all"} & set(one.shared)):
            raise refuse("InvalidSnapshot.NotFound", f"The snapshot '{name}' does not exist.")
        return one

    def own_snapshot(self, request, name):
        one = self.snapshot(request, name)
        if one.account != request.account:
            raise refuse("UnauthorizedOperation", f"Not authorized for snapshot:{one.id}", 403)
        return one

    # Images.

    def register(self, request, params):
        self.check_name(request, params.get("Name", ""))
        for key, values in CHOICES.items():
            if params.get(key, values[0]) not in values:
                raise refuse("InvalidParameterValue", f"Value ({params[key]}) for parameter {key} is invalid.")
        fields = {"Architecture": "i386", "VirtualizationType": "paravirtual"} | {key: params[key] for key in KEPT if key in params}
        if "TpmSupport" in fields and fields.get("BootMode") != "uefi":
            raise refuse("InvalidParameterCombination", "TpmSupport needs the boot mode uefi.")
        if fields["Architecture"] == "arm64" and fields.get("BootMode", "uefi") != "uefi":
            raise refuse("InvalidParameterCombination", "arm64 needs the boot mode uefi.")
        mapping = params.get("BlockDeviceMappings", [])
        fields["BlockDeviceMappings"] = [self.device(request, one) for one in mapping]
        root = [one for one in fields["BlockDeviceMappings"] if one["DeviceName"] == fields.get("RootDeviceName")]
        if not root or "SnapshotId" not in root[0]["Ebs"]:
            raise refuse("InvalidBlockDeviceMapping", "The root device has no snapshot.")
        if params.get("DryRun"):
            return self.dry()
        snapshots = [one["Ebs"]["SnapshotId"] for one in fields["BlockDeviceMappings"] if "SnapshotId" in one["Ebs"]]
        image = Image(self.world, self.world.name("ami-"), request.account, request.region, fields, snapshots, tags_of(params, "image"))
        self.world.images[image.id] = image
        return {"ImageId": image.id}

    def check_name(self, request, name):
        if not NAME.fullmatch(name):
            raise refuse("InvalidAMIName.Malformed", f"AMI names must be between 3 and 128 characters long, of letters, digits and ()[] ./-'@_: {name}")
        for one in self.world.images.values():
            if (one.account, one.region, one.fields["Name"]) == (request.account, request.region, name):
                raise refuse("InvalidAMIName.Duplicate", f"AMI name {name} is already in use by AMI {one.id}")

    def device(self, request, mapping):
        ebs = dict(mapping.get("Ebs", {}))
        if name := ebs.get("SnapshotId"):
            one = self.snapshot(request, name)
            self.world.age(one)
            if one.state != "completed":
                raise refuse("IncorrectState", f"The snapshot '{name}' is {one.state}.")
            if "Encrypted" in ebs:
                raise refuse("InvalidBlockDeviceMapping", "The encrypted flag cannot be specified since a snapshot is specified.")
            if ebs.get("VolumeSize", one.size) < one.size:
                raise refuse("InvalidBlockDeviceMapping", f"Volume of size {ebs['VolumeSize']}GB is smaller than snapshot '{name}', expect size >= {one.size}GB")
            ebs = {"VolumeSize": one.size, "Encrypted": one.encrypted} | ebs
        if ebs.get("VolumeType", "gp2") not in ("standard", "gp2", "gp3", "io1", "io2", "st1", "sc1"):
            raise refuse("InvalidParameterValue", f"Volume type {ebs['VolumeType']} is invalid.")
        return {"DeviceName": mapping.get("DeviceName"), "Ebs": {"DeleteOnTermination": True, "VolumeType": "standard"} | ebs}

    def dry(self):
        raise refuse("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)

    def describe_images(self, request, params):
        if params.get("DryRun"):
            self.dry()
        ones = [one for one in self.world.images.values() if one.region == request.region]
        if names := params.get("ImageIds"):
            ones = [self.image(request, name, owned=False) for name in names]
            hidden = [one.id for one in ones if self.world.hidden(one)]
            if hidden:
                raise refuse("InvalidAMIID.NotFound", f"The image id '[{hidden[0]}]' does not exist")
        ones = [one for one in ones if one.account == request.account or self.may_launch(one, request.account)]
        if owners := params.get("Owners"):
            ones = [one for one in ones if one.account in owners or ("self" in owners and one.account == request.account)]
        now = datetime.datetime.now(datetime.UTC)
        if not params.get("IncludeDeprecated"):
            ones = [one for one in ones if one.account == request.account or not one.deprecation or parse_time(one.deprecation) > now]
        if not names:
            ones = [one for one in ones if not self.world.hidden(one)]
        for one in ones:
            self.world.look(one)
        ones = chosen(ones, params.get("Filters", []), image_values)
        return paged(params, ones, "Images", self.described_image, self.world.knobs.describe_page)

    def described_image(self, one):
        fields = one.fields | {
            "ImageId": one.id, "OwnerId": one.account, "State": one.state, "CreationDate": one.date.strftime("%Y-%m-%dT%H:%M:%S.000Z"), "Public": one.public,
            "ImageLocation": f"{one.account}/{one.fields['Name']}", "ImageType": "machine", "RootDeviceType": "ebs", "Hypervisor": "xen",
            "PlatformDetails": "Linux/UNIX", "UsageOperation": "RunInstances", "Tags": tag_set(one.tags), "DeprecationTime": one.deprecation,
        }
        return fields | ({"StateReason": {"Code": "Client.InternalError", "Message": one.reason}} if one.reason else {})

    def deregister(self, request, params):
        one = self.image(request, params["ImageId"])
        if params.get("DryRun"):
            self.dry()
        del self.world.images[one.id]
        return {"Return": True}

    def copy(self, request, params):
        asked = {key: value for key, value in params.items() if key != "DryRun"}
        known = self.world.keyed(request.account, request.region, "CopyImage", params.get("ClientToken"), asked)
        if known:
            return {"ImageId": known}
        source = self.world.images.get(params["SourceImageId"])
        if not source or source.region != params["SourceRegion"] or not (source.account == request.account or self.may_launch(source, request.account)):
            raise refuse("InvalidAMIID.NotFound", f"The image id '[{params['SourceImageId']}]' does not exist")
        if source.state != "available":
            raise refuse("InvalidAMIID.Unavailable", f"The image '{source.id}' is {source.state}.")
        if not NAME.fullmatch(params["Name"]):
            raise refuse("InvalidAMIName.Malformed", params["Name"])
        pending = [one for one in self.world.images.values() if one.region == request.region and one.state == "pending" and "copied" in one.fields]
        if len(pending) >= COPIES:
            raise refuse("ResourceLimitExceeded", "You have exceeded the number of concurrent copies.")
        if params.get("DryRun"):
            return self.dry()
        image = self.make_copy(request, params, source)
        self.world.remember(request.account, request.region, "CopyImage", params.get("ClientToken"), asked, image.id)
        return {"ImageId": image.id}

    def make_copy(self, request, params, source):
        key, fields = None, dict(source.fields) | {"Name": params["Name"], "copied": source.id}
        if "Description" in params:
            fields["Description"] = params["Description"]
        if params.get("Encrypted") or params.get("KmsKeyId") or self.keys.by_default(request):
            key = params.get("KmsKeyId") or self.keys.default(request)
        # CopyImageTags copies the tags of the image; a TagSpecification takes precedence.
        copied = source.tags if params.get("CopyImageTags") else {}
        mapping = []
        for one in fields["BlockDeviceMappings"]:
            ebs = dict(one["Ebs"])
            if "SnapshotId" in ebs:
                snapshot = self.copy_snapshot(request, params, self.world.snapshots[ebs["SnapshotId"]], key, source)
                ebs |= {"SnapshotId": snapshot.id, "Encrypted": snapshot.encrypted}
            mapping.append(one | {"Ebs": ebs})
        fields["BlockDeviceMappings"] = mapping
        snapshots = [one["Ebs"]["SnapshotId"] for one in mapping if "SnapshotId" in one["Ebs"]]
        image = Image(self.world, self.world.name("ami-"), request.account, request.region, fields, snapshots, copied | tags_of(params, "image"))
        if key and not self.keys.there(request, key):
            image.state, image.left, image.reason = "failed", 0, "The key is not accessible."
        self.world.images[image.id] = image
        return image

    def copy_snapshot(self, request, params, source, key, image):
        description = f"Copied for DestinationAmi from SourceAmi {image.id} for SourceSnapshot {source.id}"
        one = Snapshot(self.world, self.world.name("snap-"), request.account, request.region, {"VolumeSize": source.size, "Description": description})
        if not key and source.encrypted:
            key = self.keys.default(request)
        one.kms_key, one.blocks, one.written, one.sealed, one.state = key, dict(source.blocks), set(source.blocks), True, "completed"
        one.lineage = {one.id: one.written}
        one.tags = tags_of(params, "snapshot")
        self.world.snapshots[one.id] = one
        return one

    # Attributes of images.

    def describe_image_attribute(self, request, params):
        one, attribute = self.image(request, params["ImageId"]), params["Attribute"]
        if params.get("DryRun"):
            self.dry()
        if attribute == "launchPermission":
            return {"ImageId": one.id, "LaunchPermissions": one.permissions}
        if attribute == "description":
            return {"ImageId": one.id, "Description": {"Value": one.fields.get("Description", "")}}
        field = {"bootMode": "BootMode", "imdsSupport": "ImdsSupport", "tpmSupport": "TpmSupport"}.get(attribute)
        if not field:
            raise refuse("InvalidRequest", "The request received was invalid")
        return {"ImageId": one.id, field: {"Value": one.fields.get(field)}}

    def modify_image_attribute(self, request, params):
        one = self.image(request, params["ImageId"])
        permission = params.get("LaunchPermission", {})
        add, remove = list(permission.get("Add", [])), list(permission.get("Remove", []))
        short = [{"UserId": value} for value in params.get("UserIds", [])] + [{"Group": value} for value in params.get("UserGroups", [])]
        short += [{"OrganizationArn": value} for value in params.get("OrganizationArns", [])] + [{"OrganizationalUnitArn": value} for value in params.get("OrganizationalUnitArns", [])]
        (remove if params.get("OperationType") == "remove" else add).extend(short)
        if description := params.get("Description"):
            one.fields["Description"] = description.get("Value", "") if isinstance(description, dict) else description
        self.check_permissions(request, one, add)
        if params.get("DryRun"):
            return self.dry()
        one.permissions += [entry for entry in add if entry not in one.permissions]
        one.permissions = [entry for entry in one.permissions if entry not in remove]
        return {"Return": True}

    def check_permissions(self, request, one, add):
        encrypted = [self.world.snapshots[name] for name in one.snapshots if name in self.world.snapshots and self.world.snapshots[name].encrypted]
        for entry in add:
            if "UserId" in entry and not re.fullmatch(r"[0-9]{12}", entry["UserId"]):
                raise refuse("InvalidAMIAttributeItemValue", f'Invalid attribute item value "{entry["UserId"]}" for userId item type.')
            if "Group" in entry and entry["Group"] != "all":
                raise refuse("InvalidAMIAttributeItemValue", f'Invalid attribute item value "{entry["Group"]}" for group item type.')
            if "Group" in entry and encrypted:
                raise refuse("InvalidParameter", "Images with encrypted snapshots cannot be made public.")
            if "Group" in entry and self.world.public_access[request.account, request.region] != "unblocked":
                raise refuse("OperationNotPermitted", "You can't publicly share this image because block public access for AMIs is enabled for this account in this Region.")
            if any(snapshot.kms_key == self.keys.default(request) for snapshot in encrypted):
                raise refuse("InvalidParameter", "Snapshots encrypted with the AWS Managed CMK can't be shared.")

    def deprecate(self, request, params):
        one, at = self.image(request, params["ImageId"]), params["DeprecateAt"]
        now = datetime.datetime.now(datetime.UTC)
        try:
            when = parse_time(at)
        except ValueError:
            raise refuse("InvalidParameterValue", f"{at} is not a time.") from None
        if when < now or when > now + datetime.timedelta(days=365.25 * YEARS[one.public]):
            raise refuse("InvalidParameterValue", f"The time must be within {YEARS[one.public]} years from now: {at}")
        if params.get("DryRun"):
            return self.dry()
        # AWS rounds to the minute.
        one.deprecation = (when + datetime.timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:00.000Z")
        return {"Return": True}

    def undeprecate(self, request, params):
        one = self.image(request, params["ImageId"])
        if params.get("DryRun"):
            self.dry()
        one.deprecation = None
        return {"Return": True}

    def public_access(self, request, params):
        if params.get("DryRun"):
            self.dry()
        return {"ImageBlockPublicAccessState": self.world.public_access[request.account, request.region], "ManagedBy": "account"}

    def block_public(self, request, params):
        if params.get("DryRun"):
            self.dry()
        self.world.public_access[request.account, request.region] = params["ImageBlockPublicAccessState"]
        return {"ImageBlockPublicAccessState": params["ImageBlockPublicAccessState"]}

    def unblock_public(self, request, params):
        if params.get("DryRun"):
            self.dry()
        self.world.public_access[request.account, request.region] = "unblocked"
        return {"ImageBlockPublicAccessState": "unblocked"}

    # Snapshots.

    def describe_snapshots(self, request, params):
        if params.get("DryRun"):
            self.dry()
        ones = [one for one in self.world.snapshots.values() if one.region == request.region]
        if names := params.get("SnapshotIds"):
            ones = [self.snapshot(request, name) for name in names]
            hidden = [one.id for one in ones if self.world.hidden(one)]
            if hidden:
                raise refuse("InvalidSnapshot.NotFound", f"The snapshot '{hidden[0]}' does not exist.")
        else:
            ones = [one for one in ones if not self.world.hidden(one)]
        ones = [one for one in ones if one.account == request.account or {request.account, "all"} & set(one.shared)]
        if owners := params.get("OwnerIds"):
            ones = [one for one in ones if one.account in owners or ("self" in owners and one.account == request.account)]
        for one in ones:
            self.world.look(one)
        ones = chosen(ones, params.get("Filters", []), snapshot_values)
        return paged(params, ones, "Snapshots", self.described_snapshot, self.world.knobs.describe_page)

    def described_snapshot(self, one):
        fields = {
            "SnapshotId": one.id, "OwnerId": one.account, "State": one.state, "VolumeSize": one.size, "StartTime": one.date, "Encrypted": one.encrypted,
            "KmsKeyId": one.kms_key, "Description": one.description, "Progress": "100%" if one.state == "completed" else "0%", "StorageTier": one.tier,
            "VolumeId": "vol-ffffffff", "Tags": tag_set(one.tags), "FullSnapshotSizeInBytes": len(one.blocks) * BLOCK,
        }
        return fields | ({"StateMessage": one.message} if one.message else {})

    def delete_snapshot(self, request, params):
        one = self.own_snapshot(request, params["SnapshotId"])
        users = [image.id for image in self.world.images.values() if one.id in image.snapshots]
        if users:
            raise refuse("InvalidSnapshot.InUse", f"The snapshot {one.id} is currently in use by {users[0]}")
        if params.get("DryRun"):
            return self.dry()
        del self.world.snapshots[one.id]
        return {}

    def describe_snapshot_attribute(self, request, params):
        one = self.own_snapshot(request, params["SnapshotId"])
        if params.get("Attribute") != "createVolumePermission":
            raise refuse("InvalidParameterValue", "The stand-in knows createVolumePermission only.")
        if params.get("DryRun"):
            return self.dry()
        return {"SnapshotId": one.id, "CreateVolumePermissions": [{"Group": "all"} if name == "all" else {"UserId": name} for name in one.shared]}

    def modify_snapshot_attribute(self, request, params):
        one = self.own_snapshot(request, params["SnapshotId"])
        permission = params.get("CreateVolumePermission", {})
        add, remove = ([entry.get("UserId") or entry.get("Group") for entry in permission.get(verb, [])] for verb in ("Add", "Remove"))
        short = params.get("UserIds", []) + params.get("GroupNames", [])
        (remove if params.get("OperationType") == "remove" else add).extend(short)
        for name in add:
            if name != "all" and not re.fullmatch(r"[0-9]{12}", name):
                raise refuse("InvalidParameterValue", f"Value ({name}) for parameter userId is invalid.")
            if name == "all" and one.encrypted:
                raise refuse("InvalidParameter", "Encrypted snapshots cannot be made public.")
            if one.encrypted and one.kms_key == self.keys.default(request):
                raise refuse("InvalidParameter", "Snapshots encrypted with the AWS Managed CMK can't be shared.")
        if params.get("DryRun"):
            return self.dry()
        one.shared = [name for name in one.shared if name not in remove] + [name for name in add if name not in one.shared]
        return {}

    # Tags.

    def tagged(self, request, params):
        return [(self.image if name.startswith("ami-") else self.snapshot)(request, name) for name in params["Resources"]]

    def create_tags(self, request, params):
        ones, tags = self.tagged(request, params), {tag["Key"]: tag.get("Value", "") for tag in params.get("Tags", [])}
        if any(key.startswith("aws:") for key in tags):
            raise refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
        if params.get("DryRun"):
            return self.dry()
        for one in ones:
            if len(one.tags | tags) > 50:
                raise refuse("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
            one.tags |= tags
        return {}

    def delete_tags(self, request, params):
        ones = self.tagged(request, params)
        if params.get("DryRun"):
            self.dry()
        for one in ones:
            for tag in params.get("Tags", []):
                if tag.get("Value") in (None, one.tags.get(tag["Key"])):
                    one.tags.pop(tag["Key"], None)
        return {}


