#!/usr/bin/python3
"""crosscheck.py: asks the stand-in by boto3, which is AWS's own client, for all that AWS documents and publishing relies on.

So the stand-in is not shaped to the client of vmbake. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import sys

import modules


def main():
    import asks
    import cross_auth
    import cross_ebs
    import cross_ec2

    from report import failures, skip
    if problem := modules.find():
        return skip(f"no moto: {problem}")
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
