#!/usr/bin/env python3
"""sign.py VMBAKE COSIGN OUT NAME STORE WORK: cosign accepts signatures of vmbake, and vmbake those of cosign; both refuse the same copies
that were modified. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed."""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from harness.paths import ROOT
from harness.report import case, failures
from harness.upstream.pki import Pki

vmbake, cosign, out, name, store, work = sys.argv[1:]
out, work = pathlib.Path(out), pathlib.Path(work)
LISTS = ("SHA256SUMS", "FSVERITYSUMS")
STATEMENT, BUNDLE = f"{name}.provenance.json", f"{name}.provenance.sigstore.json"
IDENTITY, ISSUER = "https://ci.test.invalid/images/release.yml@refs/heads/main", "https://ci.test.invalid"

# Only files are used: every proxy is a closed port, and the home directory is empty. Cosign reads no file of more than 128 MB otherwise.
closed = "http://127.0.0.1:9"
environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "TUF_ROOT": str(work / "home"), "COSIGN_MAX_ATTACHMENT_SIZE": "4GB",
               "http_proxy": closed, "https_proxy": closed, "HTTP_PROXY": closed, "HTTPS_PROXY": closed, "COSIGN_PASSWORD": "a password"}


def run(*command):
    done = subprocess.run([str(part) for part in command], cwd=work, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def must(*command):
    code, said = run(*command)
    assert code == 0, (command, said)


def release(folder):
    """A copy of the outputs, without the raw image: that takes seconds to read, and the others stand for it here."""
    (work / folder).mkdir()
    for file in out.glob(f"{name}.*"):
        if file.suffix == ".qcow2":
            (work / folder / file.name).symlink_to(file)
        elif file.suffix != ".raw":
            shutil.copyfile(file, work / folder / file.name)
    for file in LISTS:
        lines = [line for line in (out / file).read_text().splitlines(keepends=True) if f" {name}." in line]
        (work / folder / file).write_text("".join(lines))
    return work / folder


def verify(folder, *signer):
    return run(vmbake, "verify", "image", folder / f"{name}.qcow2", "--store", store, "--sources", work / "sources.json", *signer)


def blob(folder, file, *signer):
    """Cosign, of a list."""
    return run(cosign, "verify-blob", "--bundle", folder / f"{file}.sigstore.json", "--new-bundle-format", *signer, folder / file)


def attestation(folder, file, *signer):
    """Cosign, of the statement about an output."""
    return run(cosign, "verify-blob-attestation", "--bundle", folder / BUNDLE, "--new-bundle-format", "--type", "slsaprovenance1", *signer,
               folder / file)


def by_key(key):
    return ("--key", key), ("--key", key, "--insecure-ignore-tlog", "--trusted-root", work / "empty-root.json")


def accepted(what, folder, ours, theirs):
    code, said = verify(folder, *ours)
    case(f"{what}: vmbake verifies all of it", code == 0 and "FAILED" not in said and said.count("ok            signature") == 3, said)
    for file in LISTS:
        case(f"{what}: cosign verifies {file}", *at(blob(folder, file, *theirs), 0))
    for file in (f"{name}.qcow2", f"{name}.inputs.json", f"{name}.origin.json", f"{name}.json"):
        case(f"{what}: cosign verifies the statement for {file}", *at(attestation(folder, file, *theirs), 0))


def at(result, *codes):
    return result[0] in codes and "panic" not in result[1], result[1]


def edit(path, change):
    old = path.read_bytes()
    new = change(old)
    assert new != old, path
    path.unlink()
    path.write_bytes(new)


def bundle(change):
    """Changes a bundle as JSON."""
    def changed(text):
        value = json.loads(text)
        change(value)
        return json.dumps(value).encode()
    return changed


def flipped(text):
    """Base64 of other bytes, of the same length."""
    data = bytearray(base64.b64decode(text))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


def other_payload(value):
    envelope = value["dsseEnvelope"]
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["predicate"]["runDetails"]["builder"]["id"] = "urn:other"
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()


def flip_blob(value):
    value["messageSignature"]["signature"] = flipped(value["messageSignature"]["signature"])


def flip_statement(value):
    value["dsseEnvelope"]["signatures"][0]["sig"] = flipped(value["dsseEnvelope"]["signatures"][0]["sig"])


TAMPERED = {
    "a list with a line less": ("SHA256SUMS", lambda text: text.split(b"\n", 1)[1]),
    "a list with another digest": ("SHA256SUMS", lambda text: text.translate(bytes.maketrans(b"01", b"10"))),
    "the signature of a list": ("SHA256SUMS.sigstore.json", bundle(flip_blob)),
    "half a bundle": ("FSVERITYSUMS.sigstore.json", lambda text: text[:len(text) // 2]),
    "no bundle": ("FSVERITYSUMS.sigstore.json", lambda text: b""),
    "the signature of the statement": (BUNDLE, bundle(flip_statement)),
    "another builder in the statement": (BUNDLE, bundle(other_payload)),
    "half a statement": (BUNDLE, lambda text: text[:len(text) // 2]),
    "a byte of the image": (f"{name}.qcow2", lambda text: text[:-1] + bytes([text[-1] ^ 1])),
    "a byte of the record of inputs": (f"{name}.inputs.json", lambda text: text.replace(b"\"node\"", b"\"knot\"", 1) + b" "),
}


def tampered(what, file, change, ours, theirs):
    folder = release("tampered")
    for made in (work / "signed").glob("*.sigstore.json"):
        shutil.copyfile(made, folder / made.name)
    edit(folder / file, change)
    code, said = verify(folder, *ours)
    case(f"{what}: vmbake refuses it", code == 1 and "FAILED" in said, said)
    if file.startswith(LISTS):
        case(f"{what}: cosign refuses it", *at(blob(folder, file.removesuffix(".sigstore.json"), *theirs), 1))
    else:
        asked = file if file != BUNDLE else f"{name}.origin.json"
        case(f"{what}: cosign refuses it", *at(attestation(folder, asked, *theirs), 1))
    shutil.rmtree(folder)


def keys():
    """Signatures by keys: ours, cosign's, and both in turn."""
    must(vmbake, "key", "generate", "--out", "ours")
    must(cosign, "generate-key-pair", "--output-key-prefix", "theirs")
    signed = release("signed")
    must(vmbake, "sign", signed, "--key", "ours.key")
    ours, theirs = by_key("ours.pub")
    accepted("a key of vmbake", signed, ours, theirs)
    for what, (file, change) in TAMPERED.items():
        tampered(what, file, change, ours, theirs)
    wrong_ours, wrong_theirs = by_key("theirs.pub")
    case("another key: vmbake refuses it", *at(verify(signed, *wrong_ours), 1))
    case("another key: cosign refuses a list", *at(blob(signed, "SHA256SUMS", *wrong_theirs), 1))
    case("another key: cosign refuses the statement", *at(attestation(signed, f"{name}.origin.json", *wrong_theirs), 1))

    again = release("again")
    must(vmbake, "sign", again, "--key", "theirs.key")
    accepted("a key of cosign", again, wrong_ours, wrong_theirs)
    for file in LISTS:
        must(cosign, "sign-blob", "--yes", "--key", "theirs.key", "--tlog-upload=false", "--new-bundle-format", "--bundle",
             again / f"{file}.sigstore.json", again / file)
    predicate = work / "predicate.json"
    predicate.write_text(json.dumps(json.loads((again / STATEMENT).read_text())["predicate"]))
    must(cosign, "attest-blob", "--yes", "--key", "theirs.key", "--tlog-upload=false", "--new-bundle-format", "--bundle", again / BUNDLE,
         "--predicate", predicate, "--type", "slsaprovenance1", again / f"{name}.inputs.json")
    case("signed by cosign: vmbake verifies all of it", *at(verify(again, *wrong_ours), 0))
    predicate.write_text(predicate.read_text().replace("\"node\"", "\"knot\"", 1))
    must(cosign, "attest-blob", "--yes", "--key", "theirs.key", "--tlog-upload=false", "--new-bundle-format", "--bundle", again / BUNDLE,
         "--predicate", predicate, "--type", "slsaprovenance1", again / f"{name}.inputs.json")
    code, said = verify(again, *wrong_ours)
    case("signed by cosign, of another kind: vmbake refuses it", code == 1 and "unexpected statement" in said, said)


def keyless():
    """Signatures by certificates of an authority that is made here."""
    pki, folder = Pki(datetime.datetime.now(datetime.UTC)), release("keyless")
    (work / "root.json").write_text(json.dumps(pki.trusted_root()))
    for file in LISTS:
        signed = pki.blob_bundle((folder / file).read_bytes(), IDENTITY, ISSUER)
        (folder / f"{file}.sigstore.json").write_text(json.dumps(signed))
    statement = (folder / STATEMENT).read_bytes()
    subjects = {one["name"]: one["digest"]["sha256"] for one in json.loads(statement)["subject"] if "sha256" in one["digest"]}
    (folder / BUNDLE).write_text(json.dumps(pki.attest(subjects, IDENTITY, ISSUER, statement=statement)))
    claims = ("--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER, "--trusted-root", work / "root.json")
    accepted("an identity", folder, claims, claims)
    others = ("--certificate-identity", IDENTITY + "x", *claims[2:])
    case("another identity: vmbake refuses it", *at(verify(folder, *others), 1))
    case("another identity: cosign refuses it", *at(blob(folder, "SHA256SUMS", *others), 1))
    code, said = verify(folder, *by_key("ours.pub")[0])
    case("an identity in place of a key: vmbake refuses it", code == 1 and "a certificate instead of a key" in said, said)


def statement_of_others():
    """The library of in-toto reads the statement, and agrees about the digests of files."""
    from google.protobuf import json_format
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1 import statement_pb2
    from in_toto_attestation.v1.statement import Statement

    read = json_format.Parse((out / STATEMENT).read_text(), statement_pb2.Statement())
    Statement.copy_from_pb(read).validate()
    predicate = json_format.ParseDict(json_format.MessageToDict(read.predicate), provenance_pb2.Provenance())
    definition = predicate.build_definition if hasattr(predicate, "build_definition") else predicate.buildDefinition
    case("in-toto reads the statement", len(definition.resolved_dependencies) > 10, definition)
    for subject in read.subject:
        if "sha256" in subject.digest:
            found = hashlib.sha256((out / subject.name).read_bytes()).hexdigest()
            case(f"in-toto: {subject.name} has its digest", subject.digest["sha256"] == found, subject)
        else:
            code, said = run("fsverity", "digest", "--compact", out / subject.name)
            case(f"in-toto: {subject.name} has its digest", code == 0 and said.strip() == subject.digest["fsverity_sha256"], said)


(work / "empty-root.json").write_text('{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}\n')
shutil.copyfile(ROOT / "manifests/sources.json", work / "sources.json")
keys()
keyless()
statement_of_others()
sys.exit(bool(failures))
