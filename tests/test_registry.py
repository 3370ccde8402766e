"""A baked image is pushed to Debian's docker-registry and to a stand-in with the list of referrers, and pulled from them: interrupted, a second time, as a
second release, corrupted. oras, skopeo and cosign check the contents."""

import base64
import datetime
import filecmp
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from harness.registry import Registry
from harness.report import case
from harness.run import Programs, until
from harness.upstream import registry as stand_in
from harness.upstream.keys import canonical
from harness.upstream.pki import Pki

pytestmark = pytest.mark.needs("docker-registry", "skopeo", "zstd")
IDENTITY, ISSUER = "https://ci.test.invalid/images/release.yml@refs/heads/main", "https://ci.test.invalid"
SIGNATURE, BUNDLE = "https://sigstore.dev/cosign/sign/v1", "application/vnd.dev.sigstore.bundle.v0.3+json"


class Lab(Programs):
    """A folder with two keys, and the programs."""

    def __init__(self, folder, vmbake, cosign, oras, image):
        super().__init__(folder)
        self.vmbake, self.cosign, self.oras, self.image, self.name = vmbake, cosign, oras, image, image.stem
        for key in "release", "other":
            self.must(vmbake, "key", "generate", "--out", folder / key)

    def push(self, reference, *options, source=None):
        return self.run(self.vmbake, "push", source or self.image, reference, *options)

    def pull(self, reference, out, *options):
        return self.run(self.vmbake, "pull", reference, "--out", out, "--store", self.folder / "store", "--json", *options)

    def killed(self, condition, *command):
        """Starts a command and kills it as soon as the condition holds; whether it was still at work."""
        process = subprocess.Popen([str(part) for part in command], cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: condition() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


@pytest.fixture(scope="module")
def lab(vmbake, cosign, oras, baked):
    with tempfile.TemporaryDirectory(prefix="registry.", dir="/var/tmp") as folder:
        yield Lab(pathlib.Path(folder), vmbake, cosign, oras, baked)


@pytest.fixture(scope="module")
def registry(lab):
    with Registry(lab.folder / "open") as registry:
        yield registry


@pytest.fixture(scope="module")
def first(lab, registry):
    """The digest of the signed image in the registry."""
    done = lab.push(f"{registry.address}/node:1", "--json", "--key", lab.folder / "release.key")
    assert done.returncode == 0, done.stderr
    return digest_of(done)


@pytest.fixture(scope="module")
def source(lab):
    """A small release."""
    return release(lab, "small", small)


def digest_of(done):
    return json.loads(done.stdout)["digest"]


def same(one, other):
    return filecmp.cmp(one, other, shallow=False)


def verity(path):
    """The fs-verity digest: SHA-256, blocks of 4,096 bytes, no salt."""
    size = path.stat().st_size
    zero = hashlib.sha256(bytes(4096)).digest()
    level = []
    with open(path, "rb") as file:
        while len(level) * 4096 < size:
            try:
                start = os.lseek(file.fileno(), len(level) * 4096, os.SEEK_DATA) // 4096
            except OSError:
                start = (size + 4095) // 4096
            level.extend([zero] * (start - len(level)))
            if start * 4096 < size:
                file.seek(start * 4096)
                level.append(hashlib.sha256(file.read(4096).ljust(4096, b"\0")).digest())
    while len(level) > 1:
        level = [hashlib.sha256(b"".join(level[at:at + 128]).ljust(4096, b"\0")).digest() for at in range(0, len(level), 128)]
    descriptor = bytes([1, 1, 12, 0, 0, 0, 0, 0]) + size.to_bytes(8, "little") + level[0].ljust(64, b"\0")
    return hashlib.sha256(descriptor.ljust(256, b"\0")).hexdigest()


def release(lab, folder, change):
    """A release whose raw image was changed, with lists and provenance that say so. What is in the image does not matter here."""
    folder = lab.folder / folder
    folder.mkdir()
    for file in lab.image.parent.glob(f"{lab.name}.*json"):
        if not file.name.endswith(".sigstore.json"):
            shutil.copyfile(file, folder / file.name)
    lab.must("cp", "--sparse=always", lab.image, folder / lab.image.name)
    with open(folder / lab.image.name, "r+b") as file:
        change(file)
    [old] = [line for line in (lab.image.parent / "FSVERITYSUMS").read_text().splitlines() if line.endswith(f" {lab.image.name}")]
    old, new = old.split(" ")[0].removeprefix("sha256:"), verity(folder / lab.image.name)
    provenance = folder / f"{lab.name}.provenance.json"
    provenance.write_text(provenance.read_text().replace(old, new))
    (folder / "FSVERITYSUMS").write_text(f"sha256:{new} {lab.image.name}\n")
    listed = sorted(file.name for file in folder.glob("*.json"))
    (folder / "SHA256SUMS").write_text("".join(f"{hashlib.sha256((folder / file).read_bytes()).hexdigest()}  {file}\n" for file in listed))
    return folder / lab.image.name


def one_byte(file):
    at = os.lseek(file.fileno(), 512 << 20, os.SEEK_DATA)
    byte = os.pread(file.fileno(), 1, at)[0]
    os.pwrite(file.fileno(), bytes([byte ^ 1]), at)


def small(file):
    """The boot code, the ESP and the first files of the root."""
    file.truncate(160 << 20)


def test_interrupted(lab, registry):
    """A push and a pull that are killed halfway, and are resumed."""
    reference = f"{registry.address}/node:1"
    key = ("--key", lab.folder / "release.key")
    was_killed = lab.killed(lambda: len(registry.puts()) >= 20, lab.vmbake, "push", lab.image, reference, *key)
    before = registry.puts()
    none = lab.run(lab.oras, "manifest", "fetch", "--plain-http", "--descriptor", reference)
    case("a push that is killed leaves no tag", was_killed and none.returncode != 0, none.stdout)
    whole = lab.push(reference, "--tag", "latest", "--json", *key)
    case("and goes on where it was", whole.returncode == 0 and json.loads(whole.stdout)["reused"] >= len(before) >= 20, whole.stderr)
    sent = registry.puts()
    case("no blob is sent twice, but those that were on their way", len(sent) - len(set(sent)) <= 4, len(sent))
    again = lab.push(reference, "--tag", "other", "--json", *key)
    case("a second push sends nothing", again.returncode == 0 and registry.puts() == sent, again.stderr)
    digests = {json.loads(lab.must(lab.oras, "manifest", "fetch", "--plain-http", "--descriptor", f"{registry.address}/node:{tag}"))["digest"]
               for tag in ("1", "latest", "other")}
    case("three tags stand for one digest", digests == {digest_of(whole)}, digests)

    part, options = lab.folder / f"pulled/.{lab.name}.raw.part", ("--key", lab.folder / "release.pub")
    command = (lab.vmbake, "pull", reference, "--out", lab.folder / "pulled", "--store", lab.folder / "store", *options)
    was_killed = lab.killed(lambda: part.exists() and part.stat().st_blocks * 512 > 64 << 20, *command)
    case("a pull that is killed leaves no image", was_killed and [file.name for file in (lab.folder / "pulled").iterdir()] == [part.name])
    done = lab.pull(reference, lab.folder / "pulled", *options)
    case("and goes on where it was", done.returncode == 0 and json.loads(done.stdout)["reused_bytes"] >= 32 << 20, done.stdout + done.stderr)
    case("the image is as it was", same(lab.folder / "pulled" / lab.image.name, lab.image) and not part.exists())
    case("and as sparse", abs((lab.folder / "pulled" / lab.image.name).stat().st_blocks - lab.image.stat().st_blocks) * 512 <= 8 << 20)


def test_other_tools(lab, registry, first):
    """Checks by oras, skopeo and cosign."""
    reference, folder = f"{registry.address}/node:1", lab.folder / "oras"
    folder.mkdir()
    lab.must(lab.oras, "pull", "--plain-http", "--output", folder, reference)
    lab.must("bash", "-c", f"cat {folder}/{lab.name}.raw.zst.* | zstd -q -d --sparse -o {folder}/{lab.image.name}")
    case("oras, cat and zstd make the same image", same(folder / lab.image.name, lab.image))
    shutil.rmtree(folder)
    found = json.loads(lab.must(lab.oras, "discover", "--plain-http", "--format", "json", reference))
    types = {entry["artifactType"] for entry in found["manifests"]}
    wanted = {"application/spdx+json", "application/vnd.cyclonedx+json", "application/vnd.in-toto+json", "application/vnd.dev.sigstore.bundle.v0.3+json"}
    case("oras finds what is attached", wanted <= types, types)
    # The one of Debian 12 writes the index anew, without what it does not know.
    lab.must("skopeo", "copy", "--quiet", "--all", "--src-tls-verify=false", f"docker://{reference}", f"oci:{lab.folder}/layout:x")
    index = json.loads((lab.folder / "layout/index.json").read_text())["manifests"][0]["digest"]
    images = [json.loads(text)["manifests"][0]["digest"] for text in
              (lab.must(lab.oras, "manifest", "fetch", "--plain-http", reference), (lab.folder / "layout/blobs/sha256" / index.split(":")[1]).read_text())]
    case("skopeo copies the image as it is", images[0] == images[1], images)
    shutil.rmtree(lab.folder / "layout", ignore_errors=True)
    copied = lab.run(lab.oras, "cp", "-r", "--from-plain-http", "--to-plain-http", reference, f"{registry.address}/copy:1")
    case("oras copies it with all that is attached", copied.returncode == 0, copied.stderr)
    done = lab.pull(f"{registry.address}/copy:1@{first}", lab.folder / "copied", "--key", lab.folder / "release.pub")
    case("and the copy is pulled as signed", done.returncode == 0 and same(lab.folder / "copied" / lab.image.name, lab.image), done.stderr)
    (lab.folder / "root.json").write_text('{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}')
    for key, good in ("release.pub", True), ("other.pub", False):
        judged = lab.run(lab.cosign, "verify-attestation", "--key", lab.folder / key, "--insecure-ignore-tlog", "--trusted-root", lab.folder / "root.json", "--new-bundle-format",
                     "--allow-http-registry", "--type", "https://sigstore.dev/cosign/sign/v1", reference)
        case(f"cosign {'takes' if good else 'refuses'} the signature by {key}", (judged.returncode == 0) == good, judged.stderr)
    lab.environment["COSIGN_PASSWORD"] = "x"
    lab.must(lab.cosign, "generate-key-pair")
    (lab.folder / "empty.json").write_text("{}")
    lab.must(lab.cosign, "attest", "--yes", "--key", lab.folder / "cosign.key", "--tlog-upload=false", "--new-bundle-format", "--allow-http-registry", "--type",
         "https://sigstore.dev/cosign/sign/v1", "--predicate", lab.folder / "empty.json", f"{registry.address}/node@{first}")
    for key in "cosign.pub", "release.pub":
        done = lab.pull(f"{registry.address}/node@{first}", lab.folder / "attested", "--key", lab.folder / key, "--from", lab.image, "--force")
        case(f"a release that cosign and vmbake have signed is pulled by {key}", done.returncode == 0, done.stderr)
    shutil.rmtree(lab.folder / "attested")


def test_releases(lab, registry, first):
    """The next release transfers only changes, and corrupt data are refused."""
    source, reference = release(lab, "second", one_byte), f"{registry.address}/node:1"
    before = len(registry.puts())
    refused = lab.push(reference, source=source)
    case("a tag is not moved by chance", refused.returncode == 1 and "tag refers to" in refused.stderr and len(registry.puts()) == before, refused.stderr)
    done = lab.push(reference, "--force", "--json", source=source)
    # A chunk, the config, provenance and both lists.
    case("the next release sends five blobs", done.returncode == 0 and len(registry.puts()) - before == 5, (done.stderr, registry.puts()[before:]))
    moved = lab.pull(f"{reference}@{first}", lab.folder / "moved", "--key", lab.folder / "release.pub")
    case("a tag that was moved is noticed", moved.returncode == 1 and "tag refers to" in moved.stderr, moved.stderr)
    unsigned = lab.pull(reference, lab.folder / "moved", "--key", lab.folder / "release.pub")
    case("an unsigned release is refused", unsigned.returncode == 1 and "not signed by" in unsigned.stderr, unsigned.stderr)
    case("and leaves nothing", not (lab.folder / "moved").exists())
    got = lab.pull(reference, lab.folder / "next", "--allow-unsigned", "--from", lab.image)
    report = json.loads(got.stdout) if got.returncode == 0 else {}
    case("the next release is pulled as what has changed", same(lab.folder / "next" / lab.image.name, source) and report["downloaded_bytes"] < 5 << 20, got.stderr or report)
    shutil.rmtree(lab.folder / "next")


def test_damaged(lab, registry, source):
    """Chunks that the registry has not kept as they were."""
    reference = f"{registry.address}/small:1"
    lab.must(lab.vmbake, "push", source, reference, "--key", lab.folder / "release.key")
    fetch = (lab.oras, "manifest", "fetch", "--plain-http")
    manifest = json.loads(lab.must(*fetch, reference))["manifests"][0]["digest"]
    layers = json.loads(lab.must(*fetch, f"{registry.address}/small@{manifest}"))["layers"]
    blob = registry.blob(max(layers, key=lambda layer: layer["size"])["digest"])
    content = blob.read_bytes()
    for what, other in ("swapped", bytes([content[0] ^ 1]) + content[1:]), ("truncated", content[:-1]), ("prolonged", content + b"x"):
        blob.write_bytes(other)
        done = lab.pull(reference, lab.folder / "damaged", "--key", lab.folder / "release.pub")
        left = [file.name for file in (lab.folder / "damaged").iterdir() if not file.name.startswith(".")]
        case(f"a {what} chunk is refused", done.returncode == 1 and "error: " in done.stderr and not left, done.stderr)
    blob.write_bytes(content)
    limited = f"trap '' XFSZ; ulimit -f 20000; exec {lab.vmbake} pull {reference} --key {lab.folder}/release.pub --out {lab.folder}/full --store {lab.folder}/store"
    done = lab.run("bash", "-c", limited)
    left = [file.name for file in (lab.folder / "full").iterdir() if not file.name.startswith(".")]
    case("a pull without room is refused", done.returncode == 1 and "cannot write" in done.stderr and not left, done.stderr)


@pytest.fixture
def closed(lab, tmp_path):
    """A registry with authentication, and no credentials for it."""
    with Registry(tmp_path / "closed", closed=True) as registry:
        yield registry


def credentials(address):
    return json.dumps({"auths": {address: {"auth": base64.b64encode(b"user:secret").decode()}}})


@pytest.fixture
def docker_config(lab):
    """The settings of docker."""
    path = lab.folder / ".docker/config.json"
    path.parent.mkdir(exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


def test_credentials(lab, closed, docker_config, source):
    reference = f"{closed.address}/node:1"
    refused = lab.push(reference, source=source)
    case("without credentials a registry refuses", refused.returncode == 1 and "hint: log in with `docker login" in refused.stderr, refused.stderr)
    docker_config.write_text(credentials(closed.address))
    done = lab.push(reference, source=source)
    case("with those of docker it takes a release", done.returncode == 0, done.stderr)


def test_tokens(lab, source, monkeypatch):
    """A registry too busy for each 40th request, in two ways, whose tokens are soon used up."""
    server = stand_in.Registry(closed=True, busy=lambda number: {0: 429, 20: 503}.get(number % 40))
    (lab.folder / "auth.json").write_text(credentials(server.address))
    monkeypatch.setitem(lab.environment, "REGISTRY_AUTH_FILE", str(lab.folder / "auth.json"))
    reference = f"{server.address}/node:1"
    done = lab.push(reference, "--key", lab.folder / "release.key", source=source)
    case("a registry with tokens and little time takes a release", done.returncode == 0 and len(server.tokens) > 3, done.stderr)
    case("tokens are for this repository", server.scopes == {"repository:node:pull,push"}, server.scopes)
    case("a list of referrers needs no tag", not any("/manifests/sha256-" in line for line in server.log))
    found = json.loads(lab.must(lab.oras, "discover", "--plain-http", "--registry-config", lab.folder / "auth.json", "--format", "json", reference))
    case("oras finds what is listed", len(found["manifests"]) >= 7, found)
    got = lab.pull(reference, lab.folder / "token", "--key", lab.folder / "release.pub")
    case("and it is pulled as signed", got.returncode == 0 and same(lab.folder / "token" / lab.image.name, source), got.stderr)


def test_credential_helper(lab, closed, docker_config, source, monkeypatch):
    """A program has the credentials, as docker's `credHelpers` name one."""
    reference, program = f"{closed.address}/helper:1", lab.folder / "bin/docker-credential-test"
    program.parent.mkdir()
    monkeypatch.setitem(lab.environment, "PATH", f"{program.parent}:{lab.environment['PATH']}")
    docker_config.write_text(json.dumps({"credHelpers": {closed.address: "test"}}))
    missing = lab.push(reference, source=source)
    case("a helper that is not there is told", missing.returncode == 1 and "no usable credentials" in missing.stderr, missing.stderr)
    known = json.dumps({"ServerURL": closed.address, "Username": "user", "Secret": "secret"})
    for what, text, said in (
        ("that fails", "echo secret; exit 1", "docker-credential-test failed"),
        ("that prints something else", "echo secret", "no usable credentials"),
        ("that does not know the registry", "echo credentials not found in native keychain; exit 1", "hint: log in with `docker login"),
    ):
        program.write_text(f"#!/bin/sh\ncat >/dev/null\n{text}\n")
        program.chmod(0o755)
        done = lab.push(reference, source=source)
        case(f"a helper {what} is told", done.returncode == 1 and said in done.stderr and "secret" not in done.stderr, done.stderr)
    program.write_text(f"#!/bin/sh\nread -r server; echo \"$1 $server\" >>{lab.folder}/asked; echo '{known}'\n")
    done = lab.push(reference, source=source)
    asked = set((lab.folder / "asked").read_text().splitlines())
    case("with those of a helper it takes a release", done.returncode == 0 and asked == {f"get {closed.address}"}, (done.stderr, asked))


def certificates(lab, folder):
    """A server certificate for `localhost` by a separate authority."""
    folder.mkdir()
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    lab.must(*new, "-x509", "-subj", "/CN=authority", "-days", "2", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    lab.must(*new, "-subj", "/CN=localhost", "-keyout", folder / "server.key", "-out", folder / "server.csr")
    lab.must("openssl", "x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "1",
         "-extfile", folder / "names", "-out", folder / "server.pem")
    return folder


def test_encrypted(lab, source, monkeypatch):
    """A registry behind TLS. One of this machine is asked without, so that it stands in for another by a mirror."""
    folder = certificates(lab, lab.folder / "tls")
    with Registry(lab.folder / "encrypted", tls=folder) as registry:
        reference = "registry.test.invalid/node:1"
        mirror = ("--mirror", f"https://registry.test.invalid/=https://localhost:{registry.port}/")
        unknown = lab.push(reference, *mirror, source=source)
        case("an unknown authority is refused", unknown.returncode == 1 and "ertificate" in unknown.stderr, unknown.stderr)
        monkeypatch.setitem(lab.environment, "SSL_CERT_FILE", str(folder / "ca.pem"))
        done = lab.push(reference, *mirror, "--key", lab.folder / "release.key", source=source)
        case("with SSL_CERT_FILE a release goes through TLS", done.returncode == 0, done.stderr)
        got = lab.pull(reference, lab.folder / "encrypted-out", *mirror, "--key", lab.folder / "release.pub")
        case("and comes back as signed", got.returncode == 0 and same(lab.folder / "encrypted-out" / lab.image.name, source), got.stderr)


def test_keyless(lab, registry, first):
    """The identity of a job in CI has signed the index: authority and logs are made here."""
    pki, reference = Pki(datetime.datetime.now(datetime.UTC)), f"{registry.address}/node@{first}"
    (lab.folder / "trusted_root.json").write_text(json.dumps(pki.trusted_root()))
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": first.split(":")[1]}}], "predicateType": SIGNATURE, "predicate": {}}
    bundle = pki.attest({"": first.split(":")[1]}, IDENTITY, ISSUER, statement=canonical(statement))
    (lab.folder / "keyless.json").write_text(json.dumps(bundle))
    lab.must(lab.oras, "attach", "--plain-http", "--artifact-type", BUNDLE, reference, f"keyless.json:{BUNDLE}")
    root = ("--trusted-root", lab.folder / "trusted_root.json", "--from", lab.image, "--force")
    for what, identity, good in ("the identity", IDENTITY, True), ("another identity", IDENTITY + "x", False):
        done = lab.pull(reference, lab.folder / "keyless", "--certificate-identity", identity, "--certificate-oidc-issuer", ISSUER, *root)
        said = json.loads(done.stdout)["signed_by"] == [IDENTITY] if good and done.returncode == 0 else "not signed by" in done.stderr
        case(f"{what} of a job in CI is {'accepted' if good else 'refused'}", (done.returncode == 0) == good and said, done.stderr)
    public = lab.pull(reference, lab.folder / "keyless", "--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER, "--from", lab.image, "--force")
    case("but not by the authorities that vmbake knows", public.returncode == 1, public.stderr)
    shutil.rmtree(lab.folder / "keyless")
