"""A test sigstore: certificate authority, certificate log, transparency log and their trusted root.

A seed and times enter; certificates, signatures, log entries, bundles and `trusted_root.json` leave, in the forms in
which Fulcio, Rekor v1, cosign and GitHub publish them. The same calls in the same order give the same bytes: keys come
from the seed and signatures are deterministic (RFC 6979), so a site built twice is equal and a second release is signed
below the same root. Nothing here is secret, and nothing here may ever be trusted outside a test.

Formats: RFC 5280 with Fulcio's extensions (`docs/oid-info.md` there), RFC 6962 for the timestamps in certificates and
for the Merkle tree, `openapi.yaml` of Rekor for answers of the log, signed notes for its checkpoints, bundle 0.3 and
trusted root 0.1 of protobuf-specs, DSSE 1.0 and in-toto statement 1 with SLSA provenance 1.
"""

import base64
import datetime
import hashlib
import struct

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from harness.upstream.keys import Key, b64, canonical, der, sha256, utf8
from harness.upstream.log import REKOR_URL, Log, bundle_entry, log_key

FULCIO_URL = "https://fulcio.sigstore.dev"
CT_URL = "https://ctfe.sigstore.dev"

# Flaws of a signature in addition to identity, issuer and time. Each flaw is the only one.
FLAWS = {
    "authority": "the certificate is from an authority that the root does not have, under the same name",
    "sct": "the certificate's timestamp is signed by a log that the root does not have",
    "no-sct": "the certificate has no timestamp of a log",
    "late": "it was logged when the certificate had expired",
    "early": "it was logged before the certificate was valid",
    "signature": "the signature is over other bytes",
    "digest": "the log entry is of another digest",
    "promise": "the log's promise is signed by another key",
    "proof": "the inclusion proof does not lead to the root hash",
    "checkpoint": "the log's checkpoint is signed by another key",
    "log": "a log that the root does not have has signed promise and checkpoint, by its own key",
    "unlogged": "there is no log entry",
}

BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
CERTIFICATE_LIFE = 600  # seconds, as Fulcio's
BEFORE_LOGGED = 30  # seconds from the start of a certificate to the log entry
ROOT_START = 1633564800  # 2021-10-07, before anything that a test signs
ROOT_END = 2579558400  # 2051-09-29, after every run of a test

EMBEDDED_SCTS = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
FULCIO = "1.3.6.1.4.1.57264.1."


class Pki:
    """Authority, logs and all that was signed below one seed. Times are datetimes with a zone, or Unix seconds."""

    def __init__(self, now, seed="vmbake test sigstore"):
        self.now = seconds(now)
        self.seed = seed
        # The strangers' names equal the trusted ones: only keys tell them apart.
        self.authority, self._other_authority = Authority(seed), Authority(seed + ", another")
        self.log, self._other_log = Log(seed), Log(seed + ", another")
        self.entries = {}  # uuid -> entry, as `GET /api/v1/log/entries/<uuid>` answers {uuid: entry}
        self.index = {}  # "sha256:<hex>" -> uuids, as `POST /api/v1/index/retrieve` answers

    def trusted_root(self):
        """The `trusted_root.json` by which all this verifies."""
        authority, log = self.authority, self.log
        chain = (authority.intermediate, authority.root)
        start = {"start": "2021-10-07T00:00:00.000Z"}
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log_key(REKOR_URL, log.key, start)],
            "certificateAuthorities": [{
                "subject": {"organization": "test.invalid", "commonName": "vmbake test"},
                "uri": FULCIO_URL,
                "certChain": {"certificates": [{"rawBytes": b64(link)} for link in chain]},
                "validFor": start,
            }],
            "ctlogs": [log_key(CT_URL, authority.ct_key, start)],
            "timestampAuthorities": [],
        }

    def attest(self, subjects, identity, issuer, sign_time=None, flaw=None, statement=None):
        """A bundle 0.3 with SLSA provenance of subjects, {name: hexadecimal SHA-256}, as GitHub attests a release; or with the bytes
        of another statement about them."""
        statement = statement or canonical({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())],
            "predicateType": PREDICATE_TYPE,
            "predicate": provenance(identity),
        })
        signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(statement), statement)
        signature, certificate, time = self._sign(signed, identity, issuer, sign_time, flaw)
        envelope = {"payload": b64(statement), "payloadType": PAYLOAD_TYPE, "signatures": [{"sig": b64(signature)}]}
        bundle = {"mediaType": BUNDLE_TYPE,
                  "verificationMaterial": {"certificate": {"rawBytes": b64(certificate)}, "tlogEntries": [],
                                           "timestampVerificationData": {}},
                  "dsseEnvelope": envelope}
        if flaw != "unlogged":
            payload_hash = sha256(b"another payload" if flaw == "digest" else statement)
            spec = {
                "envelopeHash": {"algorithm": "sha256", "value": sha256(canonical(envelope))},
                "payloadHash": {"algorithm": "sha256", "value": payload_hash},
                "signatures": [{"signature": b64(signature), "verifier": b64(pem(certificate))}],
            }
            found_by = [spec["envelopeHash"]["value"], payload_hash, *subjects.values()]
            _, entry = self._record("dsse", spec, time, found_by, flaw)
            bundle["verificationMaterial"]["tlogEntries"].append(bundle_entry(entry, "dsse"))
        return bundle

    def sign_blob(self, data, identity, issuer, sign_time=None, flaw=None):
        """Output of `cosign sign-blob`: the contents of `.sig` and of `.cert` (base64 of PEM, as on dl.k8s.io), then
        the identifier of the log entry and the answer of Rekor that has it, {uuid: entry}, or twice None."""
        signature, certificate, time = self._sign(data, identity, issuer, sign_time, flaw)
        files = b64(signature), b64(pem(certificate))
        if flaw == "unlogged":
            return *files, None, None
        digest = sha256(b"another file" if flaw == "digest" else data)
        spec = {
            "data": {"hash": {"algorithm": "sha256", "value": digest}},
            "signature": {"content": b64(signature), "publicKey": {"content": b64(pem(certificate))}},
        }
        # A log that speaks of another digest is found by that of the file all the same: the client has to look.
        uuid, entry = self._record("hashedrekord", spec, time, {digest, sha256(data)}, flaw)
        return *files, uuid, {uuid: entry}

    def blob_bundle(self, data, identity, issuer, sign_time=None, flaw=None):
        """The same as a bundle 0.3, as `cosign sign-blob --bundle` writes it."""
        signature, certificate, uuid, answer = self.sign_blob(data, identity, issuer, sign_time, flaw)
        lines = base64.b64decode(certificate).decode().splitlines()
        return {"mediaType": BUNDLE_TYPE,
                "verificationMaterial": {
                    "certificate": {"rawBytes": "".join(lines[1:-1])},
                    "tlogEntries": [bundle_entry(answer[uuid], "hashedrekord")] if answer else []},
                "messageSignature": {
                    "messageDigest": {"algorithm": "SHA2_256", "digest": b64(bytes.fromhex(sha256(data)))},
                    "signature": signature}}

    def _sign(self, data, identity, issuer, sign_time, flaw):
        """Signs with a new key and certificate; answers signature, certificate and the time at which that is logged."""
        if flaw is not None and flaw not in FLAWS:
            raise ValueError(f"no such flaw: {flaw}")
        time = self.now if sign_time is None else seconds(sign_time)
        key = Key(f"{self.seed}: {identity} {issuer} {time} {sha256(data)}", "P-256")
        authority = self._other_authority if flaw == "authority" else self.authority
        ct_key = {"sct": self._other_authority.ct_key, "no-sct": None}.get(flaw, self.authority.ct_key)
        start = time - {"late": CERTIFICATE_LIFE + BEFORE_LOGGED, "early": -BEFORE_LOGGED}.get(flaw, BEFORE_LOGGED)
        certificate = authority.issue(key, identity, issuer, start, ct_key)
        return key.sign(b"other bytes" if flaw == "signature" else data), certificate, time

    def _record(self, kind, spec, time, found_by, flaw):
        """Logs an entry; returns its identifier and the log's response."""
        log = self._other_log if flaw == "log" else self.log
        uuid, entry = log.append(canonical({"apiVersion": "0.0.1", "kind": kind, "spec": spec}), time)
        proof = entry["verification"]["inclusionProof"]
        if flaw == "promise":
            entry["verification"]["signedEntryTimestamp"] = self._other_log.promise(entry)
        elif flaw == "checkpoint":
            # The hint of the trusted key, so that it is the signature that is wrong.
            proof["checkpoint"] = self._other_log.checkpoint(proof["treeSize"], proof["rootHash"], log.key.id)
        elif flaw == "proof":
            proof["hashes"][0] = sha256(b"another leaf")
        self.entries[uuid] = entry
        for digest in sorted(found_by):
            self.index.setdefault(f"sha256:{digest}", []).append(uuid)
        return uuid, entry


class Authority:
    """A certificate authority like Fulcio, root and intermediate, with the log of the certificates that it issues."""

    def __init__(self, seed):
        root_key, self._key = Key(f"{seed}: root", "P-384"), Key(f"{seed}: intermediate", "P-384")
        self.ct_key = Key(f"{seed}: certificate log", "P-256")
        root_name, self._name = name("vmbake test root"), name("vmbake test intermediate")
        usage = [(key_usage(sign_certificates=True), True)]
        self.root = certify(root_key, root_name, root_key, root_name, ROOT_START, ROOT_END,
                            [*usage, (x509.BasicConstraints(ca=True, path_length=None), True)])
        self.intermediate = certify(self._key, self._name, root_key, root_name, ROOT_START, ROOT_END,
                                    [*usage, code_signing(), (x509.BasicConstraints(ca=True, path_length=0), True)])

    def issue(self, key, identity, issuer, start, ct_key):
        """A certificate for an identity, an address or a URI, with the timestamp of a log unless that has no key."""
        is_uri = "://" in identity
        subject = x509.UniformResourceIdentifier(identity) if is_uri else x509.RFC822Name(identity)
        extensions = [(key_usage(sign_certificates=False), True), code_signing(),
                      (x509.SubjectAlternativeName([subject]), True), fulcio(1, issuer.encode()),
                      fulcio(8, utf8(issuer))]
        if is_uri and "@" in identity:
            extensions += workflow(identity)
        end = start + CERTIFICATE_LIFE

        def issued(extensions):
            return certify(key, x509.Name([]), self._key, self._name, start, end, extensions)

        if ct_key is None:
            return issued(extensions)
        # RFC 6962 section 3.2: the log signs the certificate as it is without the list of timestamps.
        body = x509.load_der_x509_certificate(issued(extensions)).tbs_certificate_bytes
        milliseconds = start * 1000
        head = struct.pack(">BBQH", 0, 0, milliseconds, 1)
        signed = head + self._key.id + len(body).to_bytes(3, "big") + body + b"\0\0"
        signature = ct_key.sign(signed)
        sct = struct.pack(">B32sQHBBH", 0, ct_key.id, milliseconds, 0, 4, 3, len(signature)) + signature
        scts = struct.pack(">HH", len(sct) + 2, len(sct)) + sct
        return issued([*extensions, (x509.UnrecognizedExtension(EMBEDDED_SCTS, der(0x04, scts)), False)])


def certify(key, subject, signer, issuer, start, end, extensions):
    """A certificate for a key, DER. The library's signature, which differs each time, is replaced."""
    public = key.private.public_key()
    builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
               .serial_number(int.from_bytes(hashlib.sha256(key.public).digest()[:16], "big") | 1)
               .not_valid_before(utc(start)).not_valid_after(utc(end))
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
               .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.private.public_key()), False))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    body = builder.sign(signer.private, signer.hash).tbs_certificate_bytes
    # ecdsa-with-SHA384, 1.2.840.10045.4.3.3: every signer of certificates has a P-384 key.
    algorithm = der(0x30, der(0x06, bytes.fromhex("2a8648ce3d040303")))
    return der(0x30, body + algorithm + der(0x03, b"\0" + signer.sign(body)))


def key_usage(sign_certificates):
    """For an authority, or for one who signs files."""
    return x509.KeyUsage(digital_signature=not sign_certificates, key_cert_sign=sign_certificates,
                         crl_sign=sign_certificates, content_commitment=False, key_encipherment=False,
                         data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False)


def code_signing():
    return x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False


def fulcio(number, value):
    """One of Fulcio's own extensions."""
    return x509.UnrecognizedExtension(ObjectIdentifier(f"{FULCIO}{number}"), value), False


def workflow(identity):
    """Fulcio's extensions for a GitHub workflow: signer, runner, repository, reference, configuration."""
    repository, reference = repository_of(identity), identity.rpartition("@")[2]
    values = {9: identity, 11: "github-hosted", 12: repository, 14: reference, 18: identity}
    return [fulcio(number, utf8(value)) for number, value in values.items()]


def provenance(identity):
    """SLSA provenance 1 as GitHub's action writes it for a workflow."""
    repository, reference = repository_of(identity), identity.rpartition("@")[2]
    file = identity.partition("@")[0].removeprefix(f"{repository}/")
    return {
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {"workflow": {"path": file, "ref": reference, "repository": repository}},
            "internalParameters": {"github": {"event_name": "push", "runner_environment": "github-hosted"}},
            "resolvedDependencies": [
                {"digest": {"gitCommit": hashlib.sha1(identity.encode()).hexdigest()},
                 "uri": f"git+{repository}@{reference}"}],
        },
        "runDetails": {"builder": {"id": identity},
                       "metadata": {"invocationId": f"{repository}/actions/runs/1/attempts/1"}},
    }


def repository_of(identity):
    """https://host/owner/repository of the identity of a workflow."""
    return "/".join(identity.split("/")[:5])


def pem(certificate):
    text = base64.b64encode(certificate).decode()
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]).encode()


def name(common):
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "test.invalid"),
                      x509.NameAttribute(NameOID.COMMON_NAME, common)])


def seconds(time):
    return int(time.timestamp()) if isinstance(time, datetime.datetime) else int(time)


def utc(time):
    return datetime.datetime.fromtimestamp(time, datetime.UTC)
