"""vmbake and cosign verify the same signatures: those of the program's tests, and signatures with and without each flaw that are made here. They agree,
except where a case gives a reason for cosign's different result."""

import base64
import datetime
import json
import os
import re

import pytest

from harness.paths import ROOT
from harness.run import run
from harness.upstream.keys import sha256
from harness.upstream.pki import FLAWS, PREDICATE_TYPE, Pki

DATA = ROOT / "src/vmbake/tests/data/sigstore"
CASES = json.loads((DATA / "cases.json").read_text())
# Expectations of the verifiers, and vmbake's result for each case. None has no flaw.
MAIL, MAIL_ISSUER = "releases@test.invalid", "https://accounts.test.invalid"
CLAIMS = {"identity": ("other@test.invalid", MAIL_ISSUER), "issuer": (MAIL, "https://other.test.invalid")}
REASONS = {
    None: "",
    "authority": "certificate chain is invalid: .*InvalidSignature",
    "sct": "certificate timestamp: .*key not found",
    "no-sct": "missing SCT",
    "late": "CertExpired",
    "early": "CertNotValidYet",
    "signature": "signature verification failed",
    "digest": "hash mismatch",
    "promise": "invalid inclusion promise: .*signature invalid",
    "proof": "root hash mismatch",
    "checkpoint": "invalid checkpoint",
    "log": "No log key",
    "unlogged": "no log entry|must have an inclusion proof",
    "identity": 'signed by "other@test.invalid"',
    "issuer": 'identity issued by "https://other.test.invalid"',
    "file": "signature verification failed|is for other files",
    "future": "after the time of the check",
}
# Cosign 2.5 of Debian 13 does not compare an attestation with the digests in its log entry, and knows no `--now`.
COSIGN_CANNOT = {("digest", "attestation"), ("future", "blob"), ("future", "attestation")}


@pytest.fixture
def environment(tmp_path):
    """Only files are read: every proxy is a closed port, and the home directory is empty."""
    closed = "http://127.0.0.1:9"
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TUF_ROOT": str(tmp_path / "home"), "http_proxy": closed, "https_proxy": closed,
            "HTTP_PROXY": closed, "HTTPS_PROXY": closed}


def judged(environment, *command):
    """Whether a program accepts a signature, and its output."""
    done = run(*command, env=environment)
    assert done.returncode in (0, 1) and "panicked" not in done.stderr, (command, done)
    return done.returncode == 0, " ".join((done.stdout + done.stderr).split())


def identity(case):
    if "key" in case:
        return ["--key", DATA / case["key"]]
    return ["--certificate-identity", case["identity"], "--certificate-oidc-issuer", case["issuer"]]


def by_vmbake(vmbake, case, environment):
    args = ["verify", "sigstore" if "bundle" in case else "cosign", *identity(case)]
    for key in ("bundle", "signature", "certificate", "log_entry", "root"):
        if key in case:
            args += ["--" + {"root": "trusted-root"}.get(key, key).replace("_", "-"), DATA / case[key]]
    for key in ("predicate_type", "now"):
        if key in case:
            args += ["--" + key.replace("_", "-"), case[key]]
    if case.get("allow_no_log"):
        args += ["--allow-no-log"]
    return judged(environment, vmbake, *args, DATA / case["artifact"])


def pem(kind, der):
    return f"-----BEGIN {kind}-----\n{der}\n-----END {kind}-----\n"


def anchors(root, work, environment):
    """The environment by which cosign trusts what a trusted root trusts, for signatures without a bundle."""
    authorities = [c["rawBytes"] for ca in root["certificateAuthorities"] for c in ca["certChain"]["certificates"]]
    files = {"SIGSTORE_ROOT_FILE": "".join(pem("CERTIFICATE", c) for c in authorities),
             "SIGSTORE_REKOR_PUBLIC_KEY": pem("PUBLIC KEY", root["tlogs"][0]["publicKey"]["rawBytes"]),
             "SIGSTORE_CT_LOG_PUBLIC_KEY_FILE": pem("PUBLIC KEY", root["ctlogs"][0]["publicKey"]["rawBytes"])}
    for name, text in files.items():
        (work / name).write_text(text)
    return environment | {name: str(work / name) for name in files}


def by_cosign(cosign, case, work, environment):
    root = DATA / case["root"] if "root" in case else ROOT / "trust/sigstore-root.json"
    args = ["verify-blob", "--offline", *identity(case)]
    if "bundle" in case:
        args += ["--new-bundle-format", "--trusted-root", root, "--bundle", DATA / case["bundle"]]
        return judged(environment, cosign, *args, DATA / case["artifact"])
    signature, certificate = ((DATA / case[key]).read_text().strip() for key in ("signature", "certificate"))
    if certificate.startswith("-----"):
        certificate = base64.b64encode(certificate.encode() + b"\n").decode()
    (work / "sig").write_text(signature)
    (work / "cert").write_text(certificate)
    args += ["--signature", work / "sig", "--certificate", work / "cert"]
    if "log_entry" in case:
        # Output of cosign with --bundle: the promise of the log.
        [entry] = json.loads((DATA / case["log_entry"]).read_text()).values()
        payload = {key: entry[key] for key in ("body", "integratedTime", "logIndex", "logID")}
        promise = {"SignedEntryTimestamp": entry["verification"]["signedEntryTimestamp"], "Payload": payload}
        bundle = {"base64Signature": signature, "cert": certificate, "rekorBundle": promise}
        (work / "bundle").write_text(json.dumps(bundle))
        args += ["--bundle", work / "bundle"]
    elif case.get("allow_no_log"):
        args += ["--insecure-ignore-tlog"]
    return judged(anchors(json.loads(root.read_text()), work, environment), cosign, *args, DATA / case["artifact"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_known_signature(case, vmbake, cosign, tmp_path, environment):
    ours, reason = by_vmbake(vmbake, case, environment)
    theirs, their_reason = by_cosign(cosign, case, tmp_path, environment)
    assert ours == ("proven" in case), reason
    assert ours == theirs or "cosign" in case, their_reason


@pytest.fixture(scope="module")
def pki():
    return Pki(datetime.datetime.now(datetime.UTC))


def test_every_flaw_has_a_reason():
    assert not set(FLAWS) - set(REASONS)


@pytest.mark.parametrize("case", REASONS, ids=lambda case: case or "no flaw")
def test_flaw(case, pki, vmbake, cosign, tmp_path):
    write(tmp_path / "root.json", pki.trusted_root())
    make(pki, case, tmp_path)
    for form in ("blob", "attestation"):
        done = run(*ours(vmbake, form, case), cwd=tmp_path)
        assert done.returncode == (case is not None) and re.search(REASONS[case], done.stderr) and "panicked" not in done.stderr, (form, done)
        if (case, form) not in COSIGN_CANNOT:
            done = run(*theirs(cosign, form), cwd=tmp_path)
            assert done.returncode == (case is not None), (form, done)


def make(pki, case, directory):
    """Writes signed files and signatures."""
    identity, issuer = CLAIMS.get(case, (MAIL, MAIL_ISSUER))
    flaw, content = case if case in FLAWS else None, b"a file"
    signature, certificate, _, answer = pki.sign_blob(content, identity, issuer, flaw=flaw)
    files = {"file.sig": signature, "file.cert": certificate, "entry.json": answer,
             "file.bundle": pki.blob_bundle(content, identity, issuer, flaw=flaw),
             "file.jsonl": pki.attest({"file": sha256(content)}, identity, issuer, flaw=flaw),
             "file": "another file" if case == "file" else content.decode()}
    for name, content in files.items():
        write(f"{directory}/{name}", content)


def ours(vmbake, form, case):
    files = ["--bundle", "file.jsonl"]
    if form == "blob":
        entry = [] if case == "unlogged" else ["--log-entry", "entry.json"]
        files = ["--signature", "file.sig", "--certificate", "file.cert", *entry]
    now = ["--now", "2026-01-01T00:00:00Z"] if case == "future" else []
    return [vmbake, "verify", "cosign" if form == "blob" else "sigstore", *files, *claims(), *now]


def theirs(cosign, form):
    if form == "blob":
        return [cosign, "verify-blob", "--bundle", "file.bundle", "--new-bundle-format", *claims()]
    return [cosign, "verify-blob-attestation", "--bundle", "file.jsonl", "--type", PREDICATE_TYPE,
            "--new-bundle-format", *claims()]


def claims():
    return ["--certificate-identity", MAIL, "--certificate-oidc-issuer", MAIL_ISSUER, "--trusted-root", "root.json",
            "file"]


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
