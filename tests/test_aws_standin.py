"""The stand-in for AWS by boto3, AWS's own client, for all documented behavior that publishing relies on, independent of vmbake's client."""

import pytest

from harness.aws import asks, cross_auth, cross_ebs, cross_ec2

PARTS = [part for module in (cross_ebs, cross_ec2, cross_auth) for part in module.PARTS]


@pytest.fixture(scope="module")
def aws():
    standin = asks.Standin()
    yield standin
    standin.close()


@pytest.mark.parametrize("part", PARTS, ids=[f"{part.__module__.rpartition('.')[2]}-{part.__name__}" for part in PARTS])
def test_standin(part, aws):
    aws.control("reset")
    part(aws)
