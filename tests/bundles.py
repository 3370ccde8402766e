#!/usr/bin/env python3
"""bundles.py VMBAKE BASE MANIFEST STORE COSIGN ORAS SKOPEO WORK [--boot]: the bundles of examples/bundles go from a publisher to an image. They are packed,
pushed to a registry, copied to another by oras and by two versions of skopeo, verified by cosign, and baked offline on two stores in two folders, whose images
must be the same; one goes to a site next to an archive; then a newer version replaces one of them. k3s and rke2 come from a release site on loopback, with stand-ins for their
programs. With --boot the first image is booted, too. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import time

from harness.paths import ROOT, UPSTREAM
from harness.report import case, failures

vmbake, base, manifest, store, cosign, oras, skopeo, work = (pathlib.Path(argument) for argument in sys.argv[1:9])
environment = {"PATH": os.environ["PATH"], "HOME": str(work), "TUF_ROOT": str(work), "LC_ALL": "C.UTF-8"}
PATIENCE = 60
ARCHES = ("amd64", "arm64")
# The publisher of each example; each has a separate key.
PUBLISHERS = {"heartbeat": "example", "node-exporter": "observe", "agent": "observe", "crun": "runtimes", "k3s": "distro", "rke2": "distro"}
# Two images with all of them, and required contents.
FIRST = {"heartbeat": "/usr/local/bin/heartbeat", "node-exporter": "/usr/bin/prometheus-node-exporter", "rke2": "/usr/local/share/rke2/LICENSE.txt"}
SECOND = {"heartbeat": "/usr/local/bin/heartbeat", "agent": "/usr/local/bin/agent", "crun": "/usr/bin/crun", "k3s": "/usr/local/bin/k3s"}
STATE = "/var/lib/heartbeat"
TOKEN = "a-token-of-no-use"
IMAGE = "dist/node.debian-13.amd64.raw"
SIGNATURE = "https://sigstore.dev/cosign/sign/v1"


def run(*command, folder="."):
    return subprocess.run([str(part) for part in command], cwd=work / folder, env=environment, capture_output=True, text=True, check=False)


def must(*command, folder="."):
    done = run(*command, folder=folder)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


class Service:
    """A server of the test's own, until `stop`."""

    def __init__(self, *command):
        self.process = subprocess.Popen([str(part) for part in command], cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end and self.process.poll() is None, self.process.args
            time.sleep(0.01)

    def stop(self):
        self.process.kill()
        self.process.wait()


def registry(name):
    """Debian's registry in a directory, and its address."""
    (work / name).mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    storage = {"filesystem": {"rootdirectory": str(work / name / "data")}}
    (work / name / "config.yml").write_text(json.dumps({"version": "0.1", "storage": storage, "http": {"addr": f"127.0.0.1:{port}"}}))
    service = Service("docker-registry", "serve", work / name / "config.yml")

    def is_there():
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", port)) == 0

    service.until(is_there)
    return service, f"127.0.0.1:{port}"


def archive(arch):
    """Files of an rke2 release, in its layout; the same bytes on every run."""
    unit = "[Service]\nType=exec\nEnvironmentFile=-/usr/local/lib/systemd/system/rke2-server.env\nExecStart=/usr/local/bin/rke2 server\n[Install]\nWantedBy=multi-user.target\n"
    members = {
        "bin/rke2": (0o755, f"#!/bin/sh\n# A stand-in for {arch}.\nexec sleep infinity\n"),
        "bin/rke2-killall.sh": (0o755, "#!/bin/sh\nexit 0\n"),
        "lib/systemd/system/rke2-server.env": (0o644, "HOME=/root\n"),
        "lib/systemd/system/rke2-server.service": (0o644, unit),
        "share/rke2/LICENSE.txt": (0o644, "A stand-in has no separate license.\n"),
    }
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (mode, text) in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(text), mode, 1_700_000_000
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(plain.getvalue(), mtime=0)


def releases():
    """The release site, and the mirrors that lead to it."""
    downloads = work / "releases/site/github.com"
    for arch in ARCHES:
        k3s = {"amd64": "k3s", "arm64": "k3s-arm64"}[arch]
        for place, name, content in (
                ("k3s-io/k3s/releases/download/v1.34.1+k3s1", k3s, f"#!/bin/sh\n# A stand-in for {arch}.\nsystemd-notify --ready\nexec sleep infinity\n".encode()),
                ("rancher/rke2/releases/download/v1.34.1+rke2r1", f"rke2.linux-{arch}.tar.gz", archive(arch))):
            folder = downloads / place
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
            (folder / f"sha256sum-{arch}.txt").write_text(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    service = Service(UPSTREAM / "serve.py", work / "releases", "--mirrors", work / "mirrors")
    service.until((work / "mirrors").exists)
    return service, [word for mirror in (work / "mirrors").read_text().split() for word in ("--mirror", mirror)]


def pack(name, out, *more):
    return must(vmbake, "bundle", "pack", f"bundles/{name}", "-o", out, "--key", f"{PUBLISHERS[name]}.key", "--store", "store", *more).strip()


def packed(mirrors):
    """Packs every example, for both architectures; the digest of each."""
    shutil.copytree(ROOT / "examples/bundles", work / "bundles")
    for publisher in sorted(set(PUBLISHERS.values())):
        must(vmbake, "key", "generate", "--out", publisher)
    there = {path.parent.name for path in (work / "bundles").glob("*/bundle.json")}
    case("every example is judged", there == set(PUBLISHERS) == set(FIRST) | set(SECOND), there)
    digests = {}
    for name in PUBLISHERS:
        said = run(vmbake, "bundle", "check", f"bundles/{name}")
        case(f"{name} is sound", said.returncode == 0 and not said.stdout + said.stderr, said.stdout + said.stderr)
        # The archive may no longer have the pinned versions: current ones are equivalent.
        is_pinned = (work / "bundles" / name / "pins.json").exists()
        digests[name] = pack(name, f"{name}.oci", *mirrors, *(["--refresh"] if is_pinned else []))
        again = pack(name, f"{name}.tar", "--offline")
        case(f"{name} has the same digest when it is packed again", again == digests[name], again)
    return digests


def inspected(place):
    done = run(vmbake, "bundle", "inspect", place, "--json")
    return json.loads(done.stdout)["digest"] if done.returncode == 0 else done.stderr


def verified(place, key):
    return run(vmbake, "bundle", "verify", place, "--key", key)


def copied(from_registry, to_registry, digests):
    """Bundles as oras and skopeo carry them from one registry to another, and to layouts in `there`."""
    (work / "there").mkdir()
    for name in FIRST:
        key, tag = f"{PUBLISHERS[name]}.pub", json.loads(must(vmbake, "bundle", "inspect", f"{name}.oci", "--json"))["version"].replace("+", "_")
        must(vmbake, "bundle", "push", f"{name}.oci", f"oci://{from_registry}/first/{name}")
        reference, other = f"{from_registry}/first/{name}:{tag}", f"{to_registry}/second/{name}:{tag}"
        must(oras, "cp", "-r", "--from-plain-http", "--to-plain-http", reference, other)
        done = verified(other, key)
        case(f"{name} is signed where oras has copied it to", done.returncode == 0 and digests[name] in done.stdout, done.stderr)
        must(oras, "cp", "-r", "--from-plain-http", "--to-oci-layout", other, f"{work}/there/{name}.oci:{tag}")
        done = verified(f"there/{name}.oci", key)
        case(f"{name} is signed in the layout that oras makes", done.returncode == 0 and digests[name] in done.stdout, done.stderr)
    return reference.replace(f"first/{name}:{tag}", "first/heartbeat:1.0.0"), f"{to_registry}/second/heartbeat:1.0.0"


def skopeos(reference, to_registry, digest):
    """skopeo takes two commands, the second for the signature; that of Debian 12 writes another index, which is not signed."""
    target, fallback = f"{to_registry}/third/heartbeat", digest.replace(":", "-")
    copy = (skopeo, "copy", "--quiet", "--all", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false")
    must(*copy, f"docker://{reference}", f"docker://{target}:1.0.0")
    done = verified(f"{target}:1.0.0", "example.pub")
    case("skopeo leaves the signature behind", done.returncode == 1 and "no attached document is a valid signature" in done.stderr, done.stderr)
    listed = f"{reference.rsplit(':', 1)[0]}:{fallback}"
    must(*copy, f"docker://{listed}", f"docker://{target}:{fallback}")
    done = verified(f"{target}:1.0.0", "example.pub")
    case("and its second command brings it", done.returncode == 0 and digest in done.stdout, done.stderr)
    for source, tag in (reference, "1.0.0"), (listed, fallback):
        must(skopeo, "copy", "--quiet", "--all", "--src-tls-verify=false", f"docker://{source}", f"oci:{work}/skopeo.oci:{tag}")
    done = verified("skopeo.oci", "example.pub")
    case("both bring a signed bundle into a layout", done.returncode == 0 and digest in done.stdout, done.stderr)
    if must("skopeo", "--version").startswith("skopeo version 1.9."):
        old = run("skopeo", *copy[1:], f"docker://{reference}", f"docker://{to_registry}/fourth/heartbeat:1.0.0")
        case("skopeo 1.9 refuses to copy an index that it would change", old.returncode == 1 and "preserve digests" in old.stderr, old.stderr)


def cosigned(reference):
    (work / "root.json").write_text('{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}')
    for key, good in ("example.pub", True), ("observe.pub", False):
        judged = run(cosign, "verify-attestation", "--key", key, "--insecure-ignore-tlog", "--trusted-root", "root.json", "--new-bundle-format",
                     "--allow-http-registry", "--type", SIGNATURE, reference)
        case(f"cosign {'takes' if good else 'refuses'} the signature of a copy by {key}", (judged.returncode == 0) == good, judged.stderr)


def consumer(folder):
    """A user with a separate store and manifests, who grants the examples' requests to their publishers."""
    shutil.copytree(store / "blobs", work / folder / "store/blobs")
    (work / folder / "manifests").mkdir()
    shutil.copy(manifest, work / folder / "manifests/node.debian-13.amd64.json")
    for name, publisher in PUBLISHERS.items():
        must(vmbake, "bundle", "trust", f"../{name}.oci", "--key", f"../{publisher}.pub", "--yes", folder=folder)


def bake(folder, bundles, *more, form="raw", out="dist"):
    chosen = [word for bundle in bundles for word in ("--with", bundle)]
    return run(vmbake, "bake", "node", *chosen, "--manifests", "manifests", "--store", "store", "--base", base, "--offline", "--format", form,
               "--out", out, *more, folder=folder)


def has(image, path):
    return run(vmbake, "ls", image, path).returncode == 0


def same_images():
    """The image of the publisher's layouts in one folder, and of the copies in another."""
    for folder, place in ("one", ".."), ("two", "../there"):
        consumer(folder)
        done = bake(folder, [f"{place}/{name}.oci" for name in FIRST])
        case(f"a node is baked with bundles of three publishers in folder {folder}", done.returncode == 0, done.stderr)
        if done.returncode:
            return
    compared = run("cmp", f"one/{IMAGE}", f"two/{IMAGE}")
    case("two stores in two folders give the same image", compared.returncode == 0, compared.stdout)
    for name, path in FIRST.items():
        case(f"it has {path} of {name}", has(f"one/{IMAGE}", path))
    shutil.rmtree(work / "two/dist")


def carried():
    """An archive of the kind and a bundle give the same image with an empty store; an archive of the image's inputs has no bundles."""
    done = bake("one", ["../heartbeat.oci"], form="qcow2", out="small")
    case("a node is baked with one bundle", done.returncode == 0, done.stderr)
    anchored = ("--sources", ROOT / "manifests/sources.json", "--trust", ROOT / "trust", "--store", "store", "--base", base)
    refused = run(vmbake, "archive", "create", "small/node.debian-13.amd64.qcow2", "-o", "image.tar", *anchored, folder="one")
    case("what it was baked of is not archived without the bundle", refused.returncode == 1 and "archives do not support bundles" in refused.stderr, refused.stderr)
    must(vmbake, "archive", "create", "node", "--manifest", "manifests/node.debian-13.amd64.json", "-o", "../node.tar", *anchored, folder="one")
    (work / "site").mkdir()
    must(vmbake, "archive", "import", "../node.tar", "--store", "store", "--inputs-to", "inputs", folder="site")
    shutil.copy(work / "one/manifests/bundles.lock.json", work / "site/inputs/manifests")
    manifests = json.loads((work / "site/inputs/manifests/node.debian-13.amd64.json").read_text())["vmconfig"]
    carried_base = work / "site/store/blobs" / manifests["os"]["image"]["digest"].replace(":", "/")
    done = run(vmbake, "bake", "node", "--no-builtin", "--manifest", "inputs/manifests/node.debian-13.amd64.json", "--layers", "inputs/layers/00", "--sources", "inputs/sources/00.json",
               "--trust", "inputs/trust/00", "--base", carried_base, "--store", "store", "--with", "../heartbeat.oci", "--publishers", "../one/trust/publishers", "--offline",
               "--format", "qcow2", folder="site")
    case("a site bakes the kind of an archive with the bundle", done.returncode == 0, done.stderr)
    compared = run("cmp", "one/small/node.debian-13.amd64.qcow2", "site/dist/node.debian-13.amd64.qcow2")
    case("and gets the same image", compared.returncode == 0, compared.stdout + compared.stderr)


def upgraded():
    """A newer version replaces the locked one, and the older one never returns accidentally."""
    shutil.copytree(work / "bundles/heartbeat", work / "bundles/next")
    for file, old, new in ("bundle.json", '"1.0.0"', '"1.1.0"'), ("layers/example.heartbeat/layer.json", '"version": "1"', '"version": "2"'):
        path = work / "bundles/next" / file
        path.write_text(path.read_text().replace(old, new))
    PUBLISHERS["next"] = "example"
    pack("next", "next.oci", "--offline")
    bundles = ["../next.oci", *(f"../{name}.oci" for name in SECOND if name != "heartbeat")]
    both = bake("two", [*bundles, "../rke2.oci"], "--upgrade-bundles")
    case("two distributions in one image are refused", both.returncode == 1 and "bundle distro.k3s conflicts with kubernetes" in both.stderr, both.stderr)
    silent = bake("two", bundles)
    case("a newer expected the locked version is not taken by chance", silent.returncode == 1 and "version 1.0.0, found 1.1.0" in silent.stderr, silent.stderr)
    done = bake("two", bundles, "--upgrade-bundles")
    case("a newer version is taken on request, with the other examples", done.returncode == 0, done.stderr)
    if done.returncode == 0:
        for name, path in SECOND.items():
            case(f"the next image has {path} of {name}", has(f"two/{IMAGE}", path))
        listed = [must(vmbake, "ls", f"{folder}/{IMAGE}", STATE).splitlines() for folder in ("one", "two")]
        # It is the home of a user, so that /etc/skel is copied to it.
        own = [line for line in listed[0] if not line.split(" ")[-1].startswith(f"{STATE}/.")]
        case(f"both versions have the same in {STATE}, and nothing of the bundle", listed[0] == listed[1] and not own, listed)
    old = bake("two", ["../heartbeat.oci"], "--upgrade-bundles", "--force")
    case("the older one is refused", old.returncode == 1 and "version 1.0.0 is lower than the locked version 1.1.0" in old.stderr, old.stderr)


def boot(name, image, user_data, *checks):
    """Boots an image with the disk that keeps the state of a machine."""
    (work / "user-data").write_text(f'{user_data}mounts:\n- ["LABEL=state", "{STATE}", "ext4"]\n')
    done = run(vmbake, "boot", image, "--network", "isolated", "--timeout", "1200", "--user-data", "user-data",
               *(word for check in (*checks, f"run=mountpoint -q {STATE} && test {STATE}/last -nt /run/systemd/system && sync", "no-failed-units") for word in ("--check", check)),
               "--", "-drive", f"file={work}/state.raw,if=virtio,format=raw")
    case(name, done.returncode == 0, done.stdout + done.stderr)
    # The machine was powered off: synced data are in the journal.
    run("e2fsck", "-fp", "state.raw")


def debugfs(*options):
    return run("debugfs", *options, "state.raw").stdout


def booted():
    """A machine, and one of the next image with the state of the first."""
    user = json.loads((ROOT / "examples/bundles/heartbeat/layers/example.heartbeat/layer.json").read_text())["users"]["heartbeat"]["id"]
    must("truncate", "--size=64M", "state.raw")
    must("mkfs.ext4", "-q", "-L", "state", "-E", f"root_owner={user}:{user}", "state.raw")
    boot("the image boots, and the services of three publishers run", f"one/{IMAGE}", "#cloud-config\n", "unit=prometheus-node-exporter.service",
         "unit=heartbeat.timer", "unit=rke2-server.service", "unit=containerd.service")
    first = debugfs("-R", "cat /last")
    case("its state is on a separate disk", bool(first.strip()), first)
    (work / "kept").write_text("of the first machine\n")
    debugfs("-w", "-R", f"write {work}/kept kept")
    chosen = [word for name in ("next", *SECOND) if name != "heartbeat" for word in ("--with", f"{name}.oci")]
    settings = [word for setting in ("AGENT_SERVER=https://reports.example.org", f"AGENT_TOKEN={TOKEN}", "AGENT_INTERVAL=5") for word in ("--set", setting)]
    user_data = must(vmbake, "user-data", "render", "--kind", "node", *chosen, *settings)
    case("user data has the secret of the agent", TOKEN in user_data, user_data)
    boot("the next image boots, and the agent runs with what user data says", f"two/{IMAGE}", user_data, "unit=agent.service", "unit=k3s.service",
         "unit=heartbeat.timer", "run=test -s /var/lib/agent/reports")
    case("the next machine has added to the state", debugfs("-R", "cat /last").strip() > first.strip(), first)
    case("and has kept what was there", debugfs("-R", "cat /kept") == "of the first machine\n", debugfs("-R", "ls -l"))


def main():
    services = []
    try:
        site, mirrors = releases()
        services.append(site)
        digests = packed(mirrors)
        first, here = registry("first")
        services.append(first)
        second, there = registry("second")
        services.append(second)
        reference, copy = copied(here, there, digests)
        skopeos(reference, there, digests["heartbeat"])
        cosigned(copy)
        same_images()
        carried()
        upgraded()
        if "--boot" in sys.argv[9:]:
            booted()
    finally:
        for service in services:
            service.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
