#!/usr/bin/env python3
"""registry.py VMBAKE COSIGN ORAS IMAGE.raw WORK: a baked image is pushed to Debian's docker-registry and to a stand-in with the list of referrers, and pulled
from them: interrupted, a second time, as a second release, corrupted. oras, skopeo and cosign check the contents. Prints `ok: NAME` or `FAIL: NAME` for
each; exit status 1 if one failed."""

import base64
import datetime
import filecmp
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness.report import case, failures
from harness.upstream import registry as stand_in
from harness.upstream.pki import Pki, canonical

vmbake, cosign, oras, image, work = (pathlib.Path(argument) for argument in sys.argv[1:])
name = image.stem

environment = {"PATH": os.environ["PATH"], "HOME": str(work), "TUF_ROOT": str(work), "LC_ALL": "C.UTF-8"}
# user:secret, as htpasswd writes it.
HTPASSWD = "user:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
PATIENCE = 60
IDENTITY, ISSUER = "https://ci.test.invalid/images/release.yml@refs/heads/main", "https://ci.test.invalid"
SIGNATURE, BUNDLE = "https://sigstore.dev/cosign/sign/v1", "application/vnd.dev.sigstore.bundle.v0.3+json"


def run(*command, **more):
    return subprocess.run([str(part) for part in command], cwd=work, env=environment, capture_output=True, text=True, check=False, **more)


def must(*command, **more):
    done = run(*command, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def push(reference, *options, source=image):
    return run(vmbake, "push", source, reference, *options)


def pull(reference, out, *options):
    return run(vmbake, "pull", reference, "--out", out, "--store", work / "store", "--json", *options)


class Registry:
    """Debian's registry in a directory, with a request log."""

    def __init__(self, folder, closed=False, tls=None):
        self.folder = work / folder
        self.folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        config = {"version": "0.1", "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}}, "http": {"addr": self.address}}
        if closed:
            (self.folder / "htpasswd").write_text(HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
        if tls:
            config["http"]["tls"] = {"certificate": str(tls / "server.pem"), "key": str(tls / "server.key")}
        (self.folder / "config.yml").write_text(json.dumps(config))
        self.output = open(self.folder / "log", "w")
        self.process = subprocess.Popen(["docker-registry", "serve", self.folder / "config.yml"], stdout=self.output, stderr=subprocess.DEVNULL)
        until(self.is_there)

    def is_there(self):
        host, port = self.address.split(":")
        with socket.socket() as asked:
            return asked.connect_ex((host, int(port))) == 0

    def puts(self):
        """The digests of the blobs that were sent, one for each time."""
        return re.findall(r'"PUT /v2/\S+/blobs/uploads/\S*digest=(sha256(?:%3A|:)[0-9a-f]{64})\S* HTTP/1.1" 201', (self.folder / "log").read_text())

    def blob(self, digest):
        hexadecimal = digest.split(":")[1]
        return self.folder / "data/docker/registry/v2/blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.output.close()


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, condition
        time.sleep(0.005)


def killed(condition, *command):
    """Starts a command and kills it as soon as the condition holds; whether it was still at work."""
    process = subprocess.Popen([str(part) for part in command], cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: condition() or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


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


def release(folder, change):
    """A release whose raw image was changed, with lists and provenance that say so. What is in the image does not matter here."""
    folder = work / folder
    folder.mkdir()
    for file in image.parent.glob(f"{name}.*json"):
        if not file.name.endswith(".sigstore.json"):
            shutil.copyfile(file, folder / file.name)
    must("cp", "--sparse=always", image, folder / image.name)
    with open(folder / image.name, "r+b") as file:
        change(file)
    [old] = [line for line in (image.parent / "FSVERITYSUMS").read_text().splitlines() if line.endswith(f" {image.name}")]
    old, new = old.split(" ")[0].removeprefix("sha256:"), verity(folder / image.name)
    provenance = folder / f"{name}.provenance.json"
    provenance.write_text(provenance.read_text().replace(old, new))
    (folder / "FSVERITYSUMS").write_text(f"sha256:{new} {image.name}\n")
    listed = sorted(file.name for file in folder.glob("*.json"))
    (folder / "SHA256SUMS").write_text("".join(f"{hashlib.sha256((folder / file).read_bytes()).hexdigest()}  {file}\n" for file in listed))
    return folder / image.name


def one_byte(file):
    at = os.lseek(file.fileno(), 512 << 20, os.SEEK_DATA)
    byte = os.pread(file.fileno(), 1, at)[0]
    os.pwrite(file.fileno(), bytes([byte ^ 1]), at)


def small(file):
    """The boot code, the ESP and the first files of the root."""
    file.truncate(160 << 20)


def interrupted(registry):
    """A push and a pull that are killed halfway, and are resumed. Returns the output of the complete push."""
    reference = f"{registry.address}/node:1"
    key = ("--key", work / "release.key")
    was_killed = killed(lambda: len(registry.puts()) >= 20, vmbake, "push", image, reference, *key)
    before = registry.puts()
    none = run(oras, "manifest", "fetch", "--plain-http", "--descriptor", reference)
    case("a push that is killed leaves no tag", was_killed and none.returncode != 0, none.stdout)
    whole = push(reference, "--tag", "latest", "--json", *key)
    case("and goes on where it was", whole.returncode == 0 and json.loads(whole.stdout)["reused"] >= len(before) >= 20, whole.stderr)
    sent = registry.puts()
    case("no blob is sent twice, but those that were on their way", len(sent) - len(set(sent)) <= 4, len(sent))
    again = push(reference, "--tag", "other", "--json", *key)
    case("a second push sends nothing", again.returncode == 0 and registry.puts() == sent, again.stderr)
    digests = {json.loads(must(oras, "manifest", "fetch", "--plain-http", "--descriptor", f"{registry.address}/node:{tag}"))["digest"]
               for tag in ("1", "latest", "other")}
    case("three tags stand for one digest", digests == {digest_of(whole)}, digests)

    part, options = work / f"pulled/.{name}.raw.part", ("--key", work / "release.pub")
    command = (vmbake, "pull", reference, "--out", work / "pulled", "--store", work / "store", *options)
    was_killed = killed(lambda: part.exists() and part.stat().st_blocks * 512 > 64 << 20, *command)
    case("a pull that is killed leaves no image", was_killed and [file.name for file in (work / "pulled").iterdir()] == [part.name])
    done = pull(reference, work / "pulled", *options)
    case("and goes on where it was", done.returncode == 0 and json.loads(done.stdout)["reused_bytes"] >= 32 << 20, done.stdout + done.stderr)
    case("the image is as it was", same(work / "pulled" / image.name, image) and not part.exists())
    case("and as sparse", abs((work / "pulled" / image.name).stat().st_blocks - image.stat().st_blocks) * 512 <= 8 << 20)
    return whole


def others(registry, digest):
    """Checks by oras, skopeo and cosign."""
    reference, folder = f"{registry.address}/node:1", work / "oras"
    folder.mkdir()
    must(oras, "pull", "--plain-http", "--output", folder, reference)
    must("bash", "-c", f"cat {folder}/{name}.raw.zst.* | zstd -q -d --sparse -o {folder}/{image.name}")
    case("oras, cat and zstd make the same image", same(folder / image.name, image))
    shutil.rmtree(folder)
    found = json.loads(must(oras, "discover", "--plain-http", "--format", "json", reference))
    types = {entry["artifactType"] for entry in found["manifests"]}
    wanted = {"application/spdx+json", "application/vnd.cyclonedx+json", "application/vnd.in-toto+json", "application/vnd.dev.sigstore.bundle.v0.3+json"}
    case("oras finds what is attached", wanted <= types, types)
    # The one of Debian 12 writes the index anew, without what it does not know.
    must("skopeo", "copy", "--quiet", "--all", "--src-tls-verify=false", f"docker://{reference}", f"oci:{work}/layout:x")
    index = json.loads((work / "layout/index.json").read_text())["manifests"][0]["digest"]
    images = [json.loads(text)["manifests"][0]["digest"] for text in
              (must(oras, "manifest", "fetch", "--plain-http", reference), (work / "layout/blobs/sha256" / index.split(":")[1]).read_text())]
    case("skopeo copies the image as it is", images[0] == images[1], images)
    shutil.rmtree(work / "layout", ignore_errors=True)
    copied = run(oras, "cp", "-r", "--from-plain-http", "--to-plain-http", reference, f"{registry.address}/copy:1")
    case("oras copies it with all that is attached", copied.returncode == 0, copied.stderr)
    done = pull(f"{registry.address}/copy:1@{digest}", work / "copied", "--key", work / "release.pub")
    case("and the copy is pulled as signed", done.returncode == 0 and same(work / "copied" / image.name, image), done.stderr)
    (work / "root.json").write_text('{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}')
    for key, good in ("release.pub", True), ("other.pub", False):
        judged = run(cosign, "verify-attestation", "--key", work / key, "--insecure-ignore-tlog", "--trusted-root", work / "root.json", "--new-bundle-format",
                     "--allow-http-registry", "--type", "https://sigstore.dev/cosign/sign/v1", reference)
        case(f"cosign {'takes' if good else 'refuses'} the signature by {key}", (judged.returncode == 0) == good, judged.stderr)
    environment["COSIGN_PASSWORD"] = "x"
    must(cosign, "generate-key-pair")
    (work / "empty.json").write_text("{}")
    must(cosign, "attest", "--yes", "--key", work / "cosign.key", "--tlog-upload=false", "--new-bundle-format", "--allow-http-registry", "--type",
         "https://sigstore.dev/cosign/sign/v1", "--predicate", work / "empty.json", f"{registry.address}/node@{digest}")
    for key in "cosign.pub", "release.pub":
        done = pull(f"{registry.address}/node@{digest}", work / "attested", "--key", work / key, "--from", image, "--force")
        case(f"a release that cosign and vmbake have signed is pulled by {key}", done.returncode == 0, done.stderr)
    shutil.rmtree(work / "attested")


def releases(registry, first):
    """The next release transfers only changes, and corrupt data are refused."""
    source, reference = release("second", one_byte), f"{registry.address}/node:1"
    before = len(registry.puts())
    refused = push(reference, source=source)
    case("a tag is not moved by chance", refused.returncode == 1 and "tag refers to" in refused.stderr and len(registry.puts()) == before, refused.stderr)
    done = push(reference, "--force", "--json", source=source)
    # A chunk, the config, provenance and both lists.
    case("the next release sends five blobs", done.returncode == 0 and len(registry.puts()) - before == 5, (done.stderr, registry.puts()[before:]))
    moved = pull(f"{reference}@{first}", work / "moved", "--key", work / "release.pub")
    case("a tag that was moved is noticed", moved.returncode == 1 and "tag refers to" in moved.stderr, moved.stderr)
    unsigned = pull(reference, work / "moved", "--key", work / "release.pub")
    case("an unsigned release is refused", unsigned.returncode == 1 and "not signed by" in unsigned.stderr, unsigned.stderr)
    case("and leaves nothing", not (work / "moved").exists())
    got = pull(reference, work / "next", "--allow-unsigned", "--from", work / "pulled" / image.name)
    report = json.loads(got.stdout) if got.returncode == 0 else {}
    case("the next release is pulled as what has changed", same(work / "next" / image.name, source) and report["downloaded_bytes"] < 5 << 20, got.stderr or report)
    shutil.rmtree(work / "next")


def damaged(registry, source):
    """Chunks that the registry has not kept as they were."""
    reference = f"{registry.address}/small:1"
    must(vmbake, "push", source, reference, "--key", work / "release.key")
    fetch = (oras, "manifest", "fetch", "--plain-http")
    manifest = json.loads(must(*fetch, reference))["manifests"][0]["digest"]
    layers = json.loads(must(*fetch, f"{registry.address}/small@{manifest}"))["layers"]
    blob = registry.blob(max(layers, key=lambda layer: layer["size"])["digest"])
    content = blob.read_bytes()
    for what, other in ("swapped", bytes([content[0] ^ 1]) + content[1:]), ("truncated", content[:-1]), ("prolonged", content + b"x"):
        blob.write_bytes(other)
        done = pull(reference, work / "damaged", "--key", work / "release.pub")
        left = [file.name for file in (work / "damaged").iterdir() if not file.name.startswith(".")]
        case(f"a {what} chunk is refused", done.returncode == 1 and "error: " in done.stderr and not left, done.stderr)


    blob.write_bytes(content)
    limited = f"trap '' XFSZ; ulimit -f 20000; exec {vmbake} pull {reference} --key {work}/release.pub --out {work}/full --store {work}/store"
    done = run("bash", "-c", limited)
    left = [file.name for file in (work / "full").iterdir() if not file.name.startswith(".")]
    case("a pull without room is refused", done.returncode == 1 and "cannot write" in done.stderr and not left, done.stderr)


def closed(source):
    """Registries with authentication."""
    registry = Registry("closed", closed=True)
    reference = f"{registry.address}/node:1"
    refused = push(reference, source=source)
    case("without credentials a registry refuses", refused.returncode == 1 and "hint: log in with `docker login" in refused.stderr, refused.stderr)
    auth = {"auths": {registry.address: {"auth": base64.b64encode(b"user:secret").decode()}}}
    (work / ".docker").mkdir()
    (work / ".docker/config.json").write_text(json.dumps(auth))
    done = push(reference, source=source)
    case("with those of docker it takes a release", done.returncode == 0, done.stderr)
    (work / ".docker/config.json").unlink()
    helper(registry, source)
    registry.stop()

    # Too busy for each 40th request, in two ways, and its tokens are soon used up.
    server = stand_in.Registry(closed=True, busy=lambda number: {0: 429, 20: 503}.get(number % 40))
    auth["auths"][server.address] = auth["auths"].pop(registry.address)
    (work / "auth.json").write_text(json.dumps(auth))
    environment["REGISTRY_AUTH_FILE"] = str(work / "auth.json")
    reference = f"{server.address}/node:1"
    done = push(reference, "--key", work / "release.key", source=source)
    case("a registry with tokens and little time takes a release", done.returncode == 0 and len(server.tokens) > 3, done.stderr)
    case("tokens are for this repository", server.scopes == {"repository:node:pull,push"}, server.scopes)
    case("a list of referrers needs no tag", not any("/manifests/sha256-" in line for line in server.log))
    found = json.loads(must(oras, "discover", "--plain-http", "--registry-config", work / "auth.json", "--format", "json", reference))
    case("oras finds what is listed", len(found["manifests"]) >= 7, found)
    got = pull(reference, work / "token", "--key", work / "release.pub")
    case("and it is pulled as signed", got.returncode == 0 and same(work / "token" / image.name, source), got.stderr)


def helper(registry, source):
    """A program has the credentials, as docker's `credHelpers` name one."""
    reference, program = f"{registry.address}/helper:1", work / "bin/docker-credential-test"
    program.parent.mkdir()
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    (work / ".docker/config.json").write_text(json.dumps({"credHelpers": {registry.address: "test"}}))
    missing = push(reference, source=source)
    case("a helper that is not there is told", missing.returncode == 1 and "no usable credentials" in missing.stderr, missing.stderr)
    known = json.dumps({"ServerURL": registry.address, "Username": "user", "Secret": "secret"})
    for what, text, said in (
        ("that fails", "echo secret; exit 1", "docker-credential-test failed"),
        ("that prints something else", "echo secret", "no usable credentials"),
        ("that does not know the registry", "echo credentials not found in native keychain; exit 1", "hint: log in with `docker login"),
    ):
        program.write_text(f"#!/bin/sh\ncat >/dev/null\n{text}\n")
        program.chmod(0o755)
        done = push(reference, source=source)
        case(f"a helper {what} is told", done.returncode == 1 and said in done.stderr and "secret" not in done.stderr, done.stderr)
    program.write_text(f"#!/bin/sh\nread -r server; echo \"$1 $server\" >>{work}/asked; echo '{known}'\n")
    done = push(reference, source=source)
    asked = set((work / "asked").read_text().splitlines())
    case("with those of a helper it takes a release", done.returncode == 0 and asked == {f"get {registry.address}"}, (done.stderr, asked))
    (work / ".docker/config.json").unlink()


def certificates(folder):
    """A server certificate for `localhost` by a separate authority."""
    folder.mkdir()
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    must(*new, "-x509", "-subj", "/CN=authority", "-days", "2", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    must(*new, "-subj", "/CN=localhost", "-keyout", folder / "server.key", "-out", folder / "server.csr")
    must("openssl", "x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "1",
         "-extfile", folder / "names", "-out", folder / "server.pem")
    return folder


def encrypted(source):
    """A registry behind TLS. One of this machine is asked without, so that it stands in for another by a mirror."""
    folder = certificates(work / "tls")
    registry = Registry("encrypted", tls=folder)
    reference = "registry.test.invalid/node:1"
    mirror = ("--mirror", f"https://registry.test.invalid/=https://localhost:{registry.address.split(':')[1]}/")
    try:
        unknown = push(reference, *mirror, source=source)
        case("an unknown authority is refused", unknown.returncode == 1 and "ertificate" in unknown.stderr, unknown.stderr)
        environment["SSL_CERT_FILE"] = str(folder / "ca.pem")
        done = push(reference, *mirror, "--key", work / "release.key", source=source)
        case("with SSL_CERT_FILE a release goes through TLS", done.returncode == 0, done.stderr)
        got = pull(reference, work / "encrypted-out", *mirror, "--key", work / "release.pub")
        case("and comes back as signed", got.returncode == 0 and same(work / "encrypted-out" / image.name, source), got.stderr)
    finally:
        environment.pop("SSL_CERT_FILE", None)
        registry.stop()


def keyless(registry, digest):
    """The identity of a job in CI has signed the index: authority and logs are made here."""
    pki, reference = Pki(datetime.datetime.now(datetime.UTC)), f"{registry.address}/node@{digest}"
    (work / "trusted_root.json").write_text(json.dumps(pki.trusted_root()))
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": digest.split(":")[1]}}], "predicateType": SIGNATURE, "predicate": {}}
    bundle = pki.attest({"": digest.split(":")[1]}, IDENTITY, ISSUER, statement=canonical(statement))
    (work / "keyless.json").write_text(json.dumps(bundle))
    must(oras, "attach", "--plain-http", "--artifact-type", BUNDLE, reference, f"keyless.json:{BUNDLE}")
    root = ("--trusted-root", work / "trusted_root.json", "--from", image, "--force")
    for what, identity, good in ("the identity", IDENTITY, True), ("another identity", IDENTITY + "x", False):
        done = pull(reference, work / "keyless", "--certificate-identity", identity, "--certificate-oidc-issuer", ISSUER, *root)
        said = json.loads(done.stdout)["signed_by"] == [IDENTITY] if good and done.returncode == 0 else "not signed by" in done.stderr
        case(f"{what} of a job in CI is {'accepted' if good else 'refused'}", (done.returncode == 0) == good and said, done.stderr)
    public = pull(reference, work / "keyless", "--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER, "--from", image, "--force")
    case("but not by the authorities that vmbake knows", public.returncode == 1, public.stderr)
    shutil.rmtree(work / "keyless")


def main():
    for key in "release", "other":
        must(vmbake, "key", "generate", "--out", work / key)
    registry = Registry("open")
    try:
        first = digest_of(interrupted(registry))
        others(registry, first)
        keyless(registry, first)
        releases(registry, first)
        source = release("small", small)
        damaged(registry, source)
    finally:
        registry.stop()
    closed(source)
    encrypted(source)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
