#!/usr/bin/env python3
"""crosscheck.py: asks the stand-in by boto3, which is AWS's own client, for all that AWS documents and publishing relies on.

So the stand-in is not shaped to the client of vmbake. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import sys

from harness.aws import asks, cross_auth, cross_ebs, cross_ec2
from harness.report import failures


def main():
    aws = asks.Standin()
    try:
        cross_ebs.check(aws)
        cross_ec2.check(aws)
        cross_auth.check(aws)
    finally:
        aws.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
