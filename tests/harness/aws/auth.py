"""Authentication and authorization: signatures (SigV4) and IAM policies, with resources and conditions.

Keys are made by `POST /_standin/keys`, or are those of moto's IAM users and assumed roles. With the knob `auth` off, a key only says whose account it is.
"""

import datetime
import hashlib
import hmac
import json
import re
import time
import urllib.parse

from harness.aws.world import ACCOUNT, Refused

UNSIGNED = "UNSIGNED-PAYLOAD"
SKEW = 300
AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([0-9]{8})/([^/]+)/([^/]+)/aws4_request, *SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})")


class Key:
    """An access key. `policies` is a list of documents; None allows everything."""

    def __init__(self, name, secret, account, arn, token=None, policies=None):
        self.name, self.secret, self.account, self.arn, self.token, self.policies = name, secret, account, arn, token, policies
        self.used, self.expired = 0, False


class Keys:
    def __init__(self, world):
        self.world, self.keys, self.signing = world, {}, {}

    def make(self, account=ACCOUNT, policies=None, token=False):
        """A new key."""
        number = len(self.keys) + 1
        name = f"{'ASIA' if token else 'AKIA'}STANDIN{number:09}"
        secret = hashlib.sha256(name.encode()).hexdigest()[:40]
        arn = f"arn:aws:iam::{account}:user/publisher-{number}"
        self.keys[name] = Key(name, secret, account, arn, f"token-{number}" if token else None, policies)
        return self.keys[name]

    def find(self, name, headers):
        """That key: one of ours, or of moto's IAM."""
        if name in self.keys:
            return self.keys[name]
        from moto.iam.access_control import CreateAccessKeyFailure, create_access_key
        given = {"X-Amz-Security-Token": headers["x-amz-security-token"]} if "x-amz-security-token" in headers else {}
        try:
            known = create_access_key(ACCOUNT, "aws", name, given)
        except CreateAccessKeyFailure:
            return None
        secret = known.create_credentials()
        documents = [document(policy) for policy in known.collect_policies()]
        return Key(name, secret.secret_key, ACCOUNT, known.arn, secret.token, documents)

    def check(self, request):
        """Finds the key of a request, and refuses it unless the signature is right."""
        found = AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if not found:
            if self.world.knobs.auth:
                raise refused(request, "missing")
            return Key("", "", ACCOUNT, "")
        name, date, region, service, signed, signature = found.groups()
        request.region, request.service = region, service
        if not self.world.knobs.auth:
            return self.keys.get(name) or Key(name, "", ACCOUNT, "")
        key = self.find(name, request.headers)
        if not key or key.token != request.headers.get("x-amz-security-token"):
            raise refused(request, "unknown")
        self.fresh(request, date)
        if not hmac.compare_digest(self.signature(key, request, date, region, service, signed.split(";")), signature):
            raise refused(request, "signature")
        self.spend(key, request)
        return key

    def fresh(self, request, date):
        when = request.headers.get("x-amz-date", "")
        if not re.fullmatch(r"[0-9]{8}T[0-9]{6}Z", when) or when[:8] != date:
            raise refused(request, "signature")
        at = datetime.datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC).timestamp()
        if abs(at - time.time()) > SKEW:
            raise refused(request, "skew")

    def spend(self, key, request):
        """Expires a key with a token after its number of requests."""
        key.used += 1
        limit = self.world.knobs.expire_after
        if key.expired or (limit and key.token and key.used > limit):
            key.expired = True
            raise refused(request, "expired")

    def signature(self, key, request, date, region, service, signed):
        needed = {"host"} | {name for name in request.headers if name.startswith("x-amz-")}
        if not needed <= set(signed) or signed != sorted(signed):
            raise refused(request, "signature")
        payload = request.headers.get("x-amz-content-sha256")
        if payload is None or payload != UNSIGNED:
            if payload not in (None, request.digest.hex()):
                raise refused(request, "signature")
            payload = request.digest.hex()
        elif request.action != "PutSnapshotBlock":
            raise refused(request, "signature")
        headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed)
        query = "&".join(f"{quoted(name)}={quoted(value)}" for name, value in sorted(request.pairs))
        canonical = "\n".join([request.method, urllib.parse.quote(request.target, safe="/~"), query, headers, ";".join(signed), payload])
        scope = f"{date}/{region}/{service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
        return hmac.new(self.derived(key, date, region, service), text.encode(), "sha256").hexdigest()

    def derived(self, key, date, region, service):
        what = (key.name, key.secret, date, region, service)
        if what not in self.signing:
            derived = ("AWS4" + key.secret).encode()
            for part in date, region, service, "aws4_request":
                derived = hmac.new(derived, part.encode(), "sha256").digest()
            self.signing[what] = derived
        return self.signing[what]


def quoted(text):
    return urllib.parse.quote(text, safe="-_.~")


def document(policy):
    """The document of a moto policy."""
    if isinstance(policy, dict):
        text = policy["policy_document"]
    elif isinstance(policy, str):
        text = policy
    else:
        text = next(version.document for version in policy.versions if version.is_default)
    return json.loads(urllib.parse.unquote(text)) if isinstance(text, str) else text


def refused(request, why):
    """Errors of each protocol for a bad signature."""
    messages = {
        "missing": ("MissingAuthenticationToken", "MissingAuthenticationTokenException", "Request is missing Authentication Token"),
        "unknown": ("AuthFailure", "UnrecognizedClientException", "The security token included in the request is invalid."),
        "signature": ("AuthFailure", "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."),
        "skew": ("RequestExpired", "InvalidSignatureException", "Signature expired: is now outside of the allowed time."),
        "expired": ("RequestExpired", "ExpiredTokenException", "The security token included in the request is expired"),
    }
    query, other, message = messages[why]
    if request.service == "ec2":
        return Refused(400 if why in ("expired", "skew") else 401, query, message)
    if request.service == "sts":
        return Refused(403, {"expired": "ExpiredToken", "unknown": "InvalidClientTokenId"}.get(why, "SignatureDoesNotMatch"), message)
    return Refused(400 if request.service == "ssm" else 403, other, message)


# Policies.


def listed(value):
    return value if isinstance(value, list) else [value]


def like(pattern, text, fold=False):
    expression = "".join(".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    return re.fullmatch(expression, text, re.DOTALL | (re.IGNORECASE if fold else 0)) is not None


TESTS = {
    "StringEquals": lambda wanted, found: wanted == found,
    "StringLike": like,
    "ArnLike": like,
    "ArnEquals": like,
    "StringEqualsIgnoreCase": lambda wanted, found: wanted.lower() == found.lower(),
    "Bool": lambda wanted, found: wanted.lower() == found.lower(),
}


def condition_holds(operator, key, wanted, context):
    """One line of a condition. Keys are compared without case, as IAM does."""
    found = next((values for name, values in context.items() if name.lower() == key.lower()), None)
    quantifier, _, operator = operator.rpartition(":")
    operator, optional = operator.removesuffix("IfExists"), operator.endswith("IfExists")
    if operator == "Null":
        return (found is None) == (str(listed(wanted)[0]).lower() == "true")
    if found is None:
        return optional or quantifier == "ForAllValues" or operator.startswith("StringNot")
    negated = operator.startswith("StringNot")
    test = TESTS["String" + operator.removeprefix("StringNot") if negated else operator]
    hits = [any(test(str(one), value) for one in listed(wanted)) != negated for value in listed(found)]
    return all(hits) if quantifier == "ForAllValues" else any(hits)


def statement_speaks(statement, action, resource, context):
    actions = any(like(one, action, fold=True) for one in listed(statement.get("Action", statement.get("NotAction", []))))
    if actions == ("NotAction" in statement):
        return False
    resources = any(like(one, resource) for one in listed(statement.get("Resource", statement.get("NotResource", []))))
    if resources == ("NotResource" in statement):
        return False
    conditions = statement.get("Condition", {})
    return all(condition_holds(operator, key, wanted, context) for operator, lines in conditions.items() for key, wanted in lines.items())


def permitted(policies, action, resource, context):
    if policies is None:
        return True
    statements = [statement for policy in policies for statement in listed(policy["Statement"])]
    speaking = [statement["Effect"] for statement in statements if statement_speaks(statement, action, resource, context)]
    return "Allow" in speaking and "Deny" not in speaking


def require(key, service, needs):
    """Refuses a request unless all that it needs, (action, resource, context) each, is permitted."""
    for action, resource, context in needs:
        if permitted(key.policies, action, resource, context):
            continue
        said = f"User: {key.arn} is not authorized to perform: {action} on resource: {resource} because no identity-based policy allows the {action} action"
        if service == "ec2":
            raise Refused(403, "UnauthorizedOperation", f"You are not authorized to perform this operation. {said}")
        if service == "ebs":
            reason = "DEPENDENCY_ACCESS_DENIED" if action.startswith("kms:") else "UNAUTHORIZED_ACCOUNT"
            raise Refused(403, "AccessDeniedException", said, reason)
        raise Refused(400, "AccessDeniedException", said)
