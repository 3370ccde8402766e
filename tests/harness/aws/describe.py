"""Descriptions of EC2's images and snapshots: filters, tags and pages."""

import base64
import datetime
import re

from harness.aws.world import Refused


def refuse(code, message, status=400):
    return Refused(status, code, message)


def tag_set(tags):
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def like(pattern, text):
    """A value of a filter: `*` and `?` stand for others, and a backslash before them for themselves."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    expression = "".join(".*" if part == "*" else "." if part == "?" else re.escape(part[-1]) for part in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def chosen(ones, filters, value_of):
    """Those that all filters let through. AWS refuses filters that it does not know."""
    for one in filters:
        name, values = one["Name"], one.get("Values", [])
        ones = [thing for thing in ones if any(like(value, text) for value in values for text in value_of(thing, name))]
    return ones


def tag_values(tags, name):
    if name == "tag-key":
        return list(tags)
    if name.startswith("tag:"):
        return [tags[name[4:]]] if name[4:] in tags else []
    raise refuse("InvalidParameterValue", f"The filter '{name}' is invalid")


def image_values(image, name):
    fields = image.fields
    simple = {
        "image-id": image.id, "name": image.fields["Name"], "state": image.state, "owner-id": image.account, "architecture": image.fields["Architecture"],
        "is-public": str(image.public).lower(), "root-device-type": "ebs", "image-type": "machine", "description": image.fields.get("Description", ""),
        "virtualization-type": image.fields["VirtualizationType"], "root-device-name": fields.get("RootDeviceName", ""), "boot-mode": fields.get("BootMode", ""),
        "imds-support": fields.get("ImdsSupport", ""), "tpm-support": fields.get("TpmSupport", ""),
    }
    if name == "block-device-mapping.snapshot-id":
        return image.snapshots
    return [simple[name]] if name in simple else tag_values(image.tags, name)


def snapshot_values(one, name):
    simple = {
        "snapshot-id": one.id, "status": one.state, "owner-id": one.account, "volume-size": str(one.size), "description": one.description,
        "encrypted": str(one.encrypted).lower(), "storage-tier": one.tier, "start-time": one.date.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }
    return [simple[name]] if name in simple else tag_values(one.tags, name)


def paged(params, ones, key, describe, most):
    """A page of a description."""
    start = int(base64.b64decode(params.get("NextToken", "MA=="))) if params.get("NextToken") else 0
    limit = min(params.get("MaxResults", most), most)
    answer = {key: [describe(one) for one in ones[start:start + limit]]}
    if start + limit < len(ones):
        answer["NextToken"] = base64.b64encode(str(start + limit).encode()).decode()
    return answer


def parse_time(text):
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
