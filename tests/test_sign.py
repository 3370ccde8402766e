"""cosign accepts signatures of vmbake, and vmbake those of cosign; both refuse the same copies of a release that were modified. in-toto's library reads the
statement."""

import base64
import datetime
import hashlib
import json
import pathlib
import shutil
import tempfile

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement

from harness.paths import ROOT
from harness.report import case
from harness.run import Programs, run
from harness.upstream.pki import Pki

LISTS = ("SHA256SUMS", "FSVERITYSUMS")
IDENTITY, ISSUER = "https://ci.test.invalid/images/release.yml@refs/heads/main", "https://ci.test.invalid"
# Only files are used: every proxy is a closed port. Cosign reads no file of more than 128 MB otherwise.
OFFLINE = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}


class Lab(Programs):
    """A folder for copies of the release, and the programs."""

    def __init__(self, folder, vmbake, cosign, out, name, store):
        super().__init__(folder, COSIGN_MAX_ATTACHMENT_SIZE="4GB", COSIGN_PASSWORD="a password", **OFFLINE)
        self.vmbake, self.cosign, self.out, self.name, self.store = vmbake, cosign, out, name, store
        self.statement, self.bundle = f"{name}.provenance.json", f"{name}.provenance.sigstore.json"
        (folder / "empty-root.json").write_text('{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}\n')
        shutil.copyfile(ROOT / "manifests/sources.json", folder / "sources.json")
        self.must(vmbake, "key", "generate", "--out", "ours")
        self.must(cosign, "generate-key-pair", "--output-key-prefix", "theirs")

    def release(self, folder):
        """A copy of the outputs, without the raw image: that takes seconds to read, and the others stand for it here."""
        (self.folder / folder).mkdir()
        for file in self.out.glob(f"{self.name}.*"):
            if file.suffix == ".qcow2":
                (self.folder / folder / file.name).symlink_to(file)
            elif file.suffix != ".raw":
                shutil.copyfile(file, self.folder / folder / file.name)
        for file in LISTS:
            lines = [line for line in (self.out / file).read_text().splitlines(keepends=True) if f" {self.name}." in line]
            (self.folder / folder / file).write_text("".join(lines))
        return self.folder / folder

    def verify(self, folder, *signer):
        return self.run(self.vmbake, "verify", "image", folder / f"{self.name}.qcow2", "--store", self.store, "--sources", self.folder / "sources.json", *signer)

    def blob(self, folder, file, *signer):
        """Cosign, of a list."""
        return self.run(self.cosign, "verify-blob", "--bundle", folder / f"{file}.sigstore.json", "--new-bundle-format", *signer, folder / file)

    def attestation(self, folder, file, *signer):
        """Cosign, of the statement about an output."""
        return self.run(self.cosign, "verify-blob-attestation", "--bundle", folder / self.bundle, "--new-bundle-format", "--type", "slsaprovenance1", *signer, folder / file)


@pytest.fixture(scope="module")
def lab(vmbake, cosign, release, name, store):
    with tempfile.TemporaryDirectory(prefix="sign.") as folder:
        yield Lab(pathlib.Path(folder), vmbake, cosign, release, name, store)


@pytest.fixture(scope="module")
def signed(lab):
    """A copy that vmbake has signed with a key of vmbake."""
    folder = lab.release("signed")
    lab.must(lab.vmbake, "sign", folder, "--key", "ours.key")
    return folder


def by_key(lab, key):
    """The options of vmbake and of cosign."""
    return ("--key", key), ("--key", key, "--insecure-ignore-tlog", "--trusted-root", lab.folder / "empty-root.json")


def ended(done, *codes):
    """For `case`: whether a program ended so, and its output."""
    said = done.stdout + done.stderr
    return done.returncode in codes and "panic" not in said, said


def accepted(lab, folder, ours, theirs):
    done = lab.verify(folder, *ours)
    good = done.returncode == 0 and "FAILED" not in done.stdout + done.stderr and (done.stdout + done.stderr).count("ok            signature") == 3
    case("vmbake verifies all of it", good, done.stdout + done.stderr)
    for file in LISTS:
        case(f"cosign verifies {file}", *ended(lab.blob(folder, file, *theirs), 0))
    for end in ("qcow2", "inputs.json", "origin.json", "json"):
        case(f"cosign verifies the statement for {end}", *ended(lab.attestation(folder, f"{lab.name}.{end}", *theirs), 0))


def refused(done, *reasons):
    said = done.stdout + done.stderr
    return done.returncode == 1 and all(reason in said for reason in reasons), said


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


# What is changed: a list, or a file of the image by the end of its name; and how.
STATEMENT_BUNDLE = "provenance.sigstore.json"
TAMPERED = {
    "a list with a line less": ("SHA256SUMS", lambda text: text.split(b"\n", 1)[1]),
    "a list with another digest": ("SHA256SUMS", lambda text: text.translate(bytes.maketrans(b"01", b"10"))),
    "the signature of a list": ("SHA256SUMS.sigstore.json", bundle(flip_blob)),
    "half a bundle": ("FSVERITYSUMS.sigstore.json", lambda text: text[:len(text) // 2]),
    "no bundle": ("FSVERITYSUMS.sigstore.json", lambda text: b""),
    "the signature of the statement": (STATEMENT_BUNDLE, bundle(flip_statement)),
    "another builder in the statement": (STATEMENT_BUNDLE, bundle(other_payload)),
    "half a statement": (STATEMENT_BUNDLE, lambda text: text[:len(text) // 2]),
    "a byte of the image": ("qcow2", lambda text: text[:-1] + bytes([text[-1] ^ 1])),
    "a byte of the record of inputs": ("inputs.json", lambda text: text.replace(b"\"node\"", b"\"knot\"", 1) + b" "),
}


def test_key_of_vmbake(lab, signed):
    accepted(lab, signed, *by_key(lab, "ours.pub"))


@pytest.mark.parametrize(("file", "change"), TAMPERED.values(), ids=TAMPERED)
def test_tampered(lab, signed, file, change):
    is_list = file.startswith(LISTS)
    folder, path = lab.release("tampered"), file if is_list else f"{lab.name}.{file}"
    try:
        for made in signed.glob("*.sigstore.json"):
            shutil.copyfile(made, folder / made.name)
        edit(folder / path, change)
        ours, theirs = by_key(lab, "ours.pub")
        case("vmbake refuses it", *refused(lab.verify(folder, *ours), "FAILED"))
        if is_list:
            done = lab.blob(folder, file.removesuffix(".sigstore.json"), *theirs)
        else:
            done = lab.attestation(folder, path if file != STATEMENT_BUNDLE else f"{lab.name}.origin.json", *theirs)
        case("cosign refuses it", *ended(done, 1))
    finally:
        shutil.rmtree(folder)


def test_another_key(lab, signed):
    ours, theirs = by_key(lab, "theirs.pub")
    case("vmbake refuses it", *ended(lab.verify(signed, *ours), 1))
    case("cosign refuses a list", *ended(lab.blob(signed, "SHA256SUMS", *theirs), 1))
    case("cosign refuses the statement", *ended(lab.attestation(signed, f"{lab.name}.origin.json", *theirs), 1))


def test_key_of_cosign(lab):
    """vmbake signs with a key of cosign; then cosign itself does."""
    again, (ours, theirs) = lab.release("again"), by_key(lab, "theirs.pub")
    lab.must(lab.vmbake, "sign", again, "--key", "theirs.key")
    accepted(lab, again, ours, theirs)
    alone = ("--yes", "--key", "theirs.key", "--tlog-upload=false", "--new-bundle-format", "--bundle")
    for file in LISTS:
        lab.must(lab.cosign, "sign-blob", *alone, again / f"{file}.sigstore.json", again / file)
    predicate = lab.folder / "predicate.json"
    attest = (lab.cosign, "attest-blob", *alone, again / lab.bundle, "--predicate", predicate, "--type", "slsaprovenance1", again / f"{lab.name}.inputs.json")
    predicate.write_text(json.dumps(json.loads((again / lab.statement).read_text())["predicate"]))
    lab.must(*attest)
    case("signed by cosign: vmbake verifies all of it", *ended(lab.verify(again, *ours), 0))
    predicate.write_text(predicate.read_text().replace("\"node\"", "\"knot\"", 1))
    lab.must(*attest)
    case("signed by cosign, of another kind: vmbake refuses it", *refused(lab.verify(again, *ours), "unexpected statement"))


def test_keyless(lab):
    """Signatures by certificates of an authority that is made here."""
    pki, folder = Pki(datetime.datetime.now(datetime.UTC)), lab.release("keyless")
    (lab.folder / "root.json").write_text(json.dumps(pki.trusted_root()))
    for file in LISTS:
        bundle = pki.blob_bundle((folder / file).read_bytes(), IDENTITY, ISSUER)
        (folder / f"{file}.sigstore.json").write_text(json.dumps(bundle))
    statement = (folder / lab.statement).read_bytes()
    subjects = {one["name"]: one["digest"]["sha256"] for one in json.loads(statement)["subject"] if "sha256" in one["digest"]}
    (folder / lab.bundle).write_text(json.dumps(pki.attest(subjects, IDENTITY, ISSUER, statement=statement)))
    claims = ("--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER, "--trusted-root", lab.folder / "root.json")
    accepted(lab, folder, claims, claims)
    others = ("--certificate-identity", IDENTITY + "x", *claims[2:])
    case("another identity: vmbake refuses it", *ended(lab.verify(folder, *others), 1))
    case("another identity: cosign refuses it", *ended(lab.blob(folder, "SHA256SUMS", *others), 1))
    case("an identity in place of a key: vmbake refuses it", *refused(lab.verify(folder, *by_key(lab, "ours.pub")[0]), "a certificate instead of a key"))


def test_in_toto(release, name):
    """The library of in-toto reads the statement, and agrees about the digests of files."""
    read = json_format.Parse((release / f"{name}.provenance.json").read_text(), statement_pb2.Statement())
    Statement.copy_from_pb(read).validate()
    predicate = json_format.ParseDict(json_format.MessageToDict(read.predicate), provenance_pb2.Provenance())
    definition = predicate.build_definition if hasattr(predicate, "build_definition") else predicate.buildDefinition
    assert len(definition.resolved_dependencies) > 10
    for subject in read.subject:
        if "sha256" in subject.digest:
            found = hashlib.sha256((release / subject.name).read_bytes()).hexdigest()
            case(f"{subject.name} has its digest", subject.digest["sha256"] == found, subject)
        else:
            done = run("fsverity", "digest", "--compact", release / subject.name)
            case(f"{subject.name} has its digest", done.returncode == 0 and done.stdout.strip() == subject.digest["fsverity_sha256"], done.stdout + done.stderr)
