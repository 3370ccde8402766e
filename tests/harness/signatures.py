#!/usr/bin/env python3
"""signatures.py VMBAKE COSIGN: signatures without and with each flaw, made here; both programs judge them all."""

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

from harness.upstream.pki import FLAWS, PREDICATE_TYPE, Pki, sha256

# What the judges are told to expect, and what vmbake says of each case. None has no flaw.
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
    "issuer": 'vouched for by "https://other.test.invalid"',
    "file": "signature verification failed|speaks of other files",
    "future": "after the time of the check",
}
# Cosign 2.5 of Debian 13 does not compare an attestation with the digests in its log entry, and knows no `--now`.
COSIGN_CANNOT = {("digest", "attestation"), ("future", "blob"), ("future", "attestation")}


def main(vmbake, cosign):
    """Judges every case by both programs, as a file's signature and as an attestation; answers whether any is wrong."""
    vmbake, cosign = os.path.abspath(vmbake), os.path.abspath(cosign)
    pki, failed = Pki(datetime.datetime.now(datetime.UTC)), False
    unknown = set(FLAWS) - set(REASONS)
    assert not unknown, unknown
    with tempfile.TemporaryDirectory() as directory:
        write(f"{directory}/root.json", pki.trusted_root())
        for case, reason in REASONS.items():
            make(pki, case, directory)
            for form in ("blob", "attestation"):
                said = run(ours(vmbake, form, case), directory)
                right = said[0] == (case is not None) and re.search(reason, said[1]) and "panicked" not in said[1]
                failed |= report(f"{case or 'no flaw'}, {form}: vmbake", right, said)
                if (case, form) not in COSIGN_CANNOT:
                    said = run(theirs(cosign, form), directory)
                    failed |= report(f"{case or 'no flaw'}, {form}: cosign", said[0] == (case is not None), said)
    return failed


def make(pki, case, directory):
    """Writes what is signed, and the signatures."""
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


def run(command, directory):
    """Exit status and messages of a program."""
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    return result.returncode, result.stderr


def report(name, right, said):
    print(f"ok: {name}" if right else f"FAIL: {name}: exit code {said[0]}\n{said[1]}")
    return not right


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
