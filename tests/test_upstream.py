"""Manifests of knd and knc from release sites on loopback, then every known attack on them; and what layers download themselves (requested.py).

The sites hold real programs in the layouts of their upstreams, signed with keys made for this run; the Debian archive is the real one.
"""

import hashlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

from harness.report import case
from harness.requested import requested
from harness.upstream.doors import Proxy, tls_door
from harness.upstream.lab import Lab

ARCHES = ["amd64", "arm64"]
TARGETS = [f"{kind}.debian-13.{arch}" for kind in ("knc", "knd") for arch in ARCHES]
FLUENTBIT = "/packages.fluentbit.io/debian/trixie/dists/trixie"


def texts(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}


def entry(folder, target, name):
    return json.loads((folder / f"{target}.json").read_text())["vmconfig"]["dependencies"][name]


def site_path(folder, target, name):
    """The path of an artifact on the server."""
    return entry(folder, target, name)["url"].replace("https://", "/", 1)


def resolve(lab, manifests, store):
    code, said = lab.update(manifests, store, "knd", "knc")
    case("knd and knc resolve for both architectures", code == 0 and sorted(texts(manifests)) == [f"{t}.json" for t in TARGETS], said)
    for target in TARGETS:
        code, said = lab.run("manifest", "show", manifests / f"{target}.json", "--store", store)
        case(f"{target} is proven anew from its evidence", code == 0 and "NOT PROVEN" not in said and "proven by" in said, said)
    before, _ = texts(manifests), lab.requests()
    code, said = lab.update(manifests, store, "knd", "knc")
    case("a second update sends no requests and changes nothing", code == 0 and texts(manifests) == before and not lab.requests(), said)
    code, said = lab.update(manifests, store, "knd", "knc", "--refresh")
    case("a refresh that finds nothing new changes no byte", code == 0 and texts(manifests) == before, said)
    lab.requests()

    path = manifests / "knd.debian-13.amd64.json"
    document = json.loads(path.read_text())
    del document["vmconfig"]["dependencies"]["crictl"]
    path.write_text(json.dumps(document))
    code, said = lab.update(manifests, store, "knd", "knc")
    asked = {request[1] for request in lab.requests()}
    case("a deleted entry alone is resolved again", code == 0 and texts(manifests) == before and
         all("cri-tools" in path for path in asked), f"{said}\n{asked}")

    code, said = lab.update(manifests, store, "knd", "knc", "--check")
    case("--check is content when nothing is newer", code == 0, said)
    latest = lab.root / "site/api.github.com/repos/kubernetes-sigs/cri-tools/releases/latest"
    kept = latest.read_bytes()
    latest.write_text(json.dumps({"tag_name": "v99.0.0"}))
    code, said = lab.update(manifests, store, "knd", "knc", "--check")
    latest.write_text(json.dumps({"tag_name": "v0.0.1"}))
    back = lab.update(manifests, store, "knd", "--only", "crictl")
    latest.write_bytes(kept)
    case("an upstream that goes back is not followed", back[0] == 1 and "older than the pinned" in back[1] and texts(manifests) == before, back[1])
    case("--check names what is newer", code == 1 and said.count("-> 99.0.0") == 4 and texts(manifests) == before, said)
    case("--check downloads no artifact", not any("/download/" in request[1] for request in lab.requests()))


def foreign(document):
    """A manifest as a tool writes it that records no proofs."""
    config = document["vmconfig"]
    keep = ("version", "url", "type", "digest", "size")
    def own(pinned):
        return {key: pinned[key] for key in keep}
    config["dependencies"] = {name: own(pinned) for name, pinned in config["dependencies"].items() if "layer" not in pinned}
    config["dependencies"]["vmconfig"] = {"version": "dev", "url": "", "type": "tar.gz", "digest": "", "size": 0}
    config["os"]["image"] = own(config["os"]["image"])
    config["images"] = [{key: image[key] for key in image if key != "proof"} for image in config["images"]]
    return {"vmconfig": {key: config[key] for key in ("version", "kind", "os", "dependencies", "images")}}


def keep(lab, manifests, store, work):
    """Pins without proofs are kept if they can be proven, though upstreams have something newer."""
    target = "knc.debian-13.amd64"
    path, before = work / f"foreign/{target}.json", json.loads((manifests / f"{target}.json").read_text())
    path.parent.mkdir()
    pinned = foreign(json.loads(json.dumps(before)))
    path.write_text(json.dumps(pinned))
    newer = {f"/api.github.com/repos/{name}/releases/latest": {"kind": "swap", "file": str(lab.root / "attacks/newer")}
             for name in ("opencontainers/runc", "containerd/containerd", "kubernetes-sigs/cri-tools")}
    (lab.root / "attacks/newer").write_text(json.dumps({"tag_name": "v99.0.0"}))
    lab.fault(newer)
    code, said = lab.update(path.parent, work / "foreign-store", "knc", "--arch", "amd64")
    after = json.loads(path.read_text())
    case("pins without proofs are kept where they can be proven", code == 0 and after == before and "renewing" not in said, said)
    code, said = lab.run("manifest", "show", path, "--store", work / "foreign-store")
    case("and have proofs then", code == 0 and "NOT PROVEN" not in said, said)

    lab.fault({})
    entries = pinned["vmconfig"]["dependencies"]
    wrong = {"runc": "sha256:" + "0" * 64, "uidmap": "sha256:" + "1" * 64, "kube-apiserver": "sha256:" + "2" * 64}
    for name, digest in wrong.items():
        entries[name]["digest"] = digest
    entries["crictl"]["version"] = "0.0.1"
    entries["netsy"]["version"] = "../1"
    entries["zot"]["digest"] = "sha512:" + hashlib.sha512(pathlib.Path(lab.run("store", "path", entries["zot"]["digest"], "--store", store)[1].strip()).read_bytes()).hexdigest()
    pinned["vmconfig"]["images"][0]["index"] = "sha256:" + "3" * 64
    path.write_text(json.dumps(pinned))
    code, said = lab.update(path.parent, work / "foreign-store", "knc", "--arch", "amd64")
    told = {line.split()[2].rstrip(":") for line in said.splitlines() if line.split()[:1] == ["renewing"]}
    case("others get the newest version, with the reason", code == 0 and json.loads(path.read_text()) == before and
         told == {*wrong, "crictl", "netsy", "registry.k8s.io/pause"}, f"{told}\n{said}")
    case("a reason has both digests", re.search(r"runc: .*upstream has [0-9.]+, sha256:\w+, but the manifest pins [0-9.]+, sha256:0{64}", said), said)
    path.write_text(json.dumps(foreign(json.loads(json.dumps(before)))))
    lab.fault(newer)
    code, said = lab.update(path.parent, work / "foreign-store", "knc", "--arch", "amd64", "--only", "runc")
    lab.fault({})
    case("--only asks for the newest", code == 1 and "99.0.0" in said, said)


def fetch(lab, manifests, work):
    target = "knd.debian-13.amd64"
    arguments = ["fetch", "knd", "--manifest", manifests / f"{target}.json", "--store"]
    code, said = lab.run(*arguments, work / "fetched")
    case("fetch fills an empty store", code == 0 and bool(lab.requests()), said)
    code, said = lab.run(*arguments, work / "fetched")
    case("a second fetch sends no requests", code == 0 and not lab.requests(), said)
    code, said = lab.run("store", "verify", "--store", work / "fetched")
    case("the store is sound", code == 0, said)

    digest = entry(manifests, target, "runc")["digest"]
    blob = pathlib.Path(lab.run("store", "path", digest, "--store", work / "fetched")[1].strip())
    damaged = bytearray(blob.read_bytes())
    damaged[1000] ^= 1
    blob.unlink()
    blob.write_bytes(damaged)
    code, said = lab.run(*arguments, work / "fetched")
    case("a damaged blob is fetched again, and nothing else", code == 0 and len(lab.requests()) == 1, said)
    code, said = lab.run("store", "gc", "--store", work / "fetched", "--manifests", manifests / f"{target}.json", "--dry-run")
    # Cache entries of the corrupt blob can be garbage: whether it was noted depends on how soon it was hashed.
    garbage = [line for line in said.splitlines() if "/blobs/" in line]
    case("nothing that the manifest pins is garbage", code == 0 and "would be removed" in said and not garbage, said)

    lab.requests()
    both = [subprocess.Popen(lab.command(*arguments, work / "shared"), env=lab.environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    codes = [process.wait() for process in both]
    asked = [request[1] for request in lab.requests() if not re.search("/manifests/|/token|/log/entries/", request[1]) and request[3] == "200"]
    case("two fetches into one store download nothing twice", codes == [0, 0] and len(set(asked)) == len(asked), str(asked))
    path = site_path(manifests, target, "containerd")
    lab.fault({path: {"kind": "cut", "after": 4_000_000}})
    code, said = lab.run(*arguments, work / "resumed")
    ranges = [int(request[2]) for request in lab.requests() if request[1] == path]
    case("cut connections are continued", code == 0 and len(ranges) > 2 and ranges == sorted(set(ranges)), f"{said}\n{ranges}")
    for name, fault, expected in [
        ("a flipped byte", {"kind": "flip"}, "expected digest .* found sha"),
        ("an endless body", {"kind": "endless"}, "larger than the limit"),
        ("a redirect loop", {"kind": "loop"}, "redirects"),
        ("a shorter file", {"kind": "truncate"}, r"expected \d+ bytes, found"),
    ]:
        lab.fault({path: fault})
        code, said = lab.run(*arguments, work / "attacked")
        kept = lab.run("store", "path", entry(manifests, target, "containerd")["digest"], "--store", work / "attacked")[0] == 0
        case(f"fetch refuses {name}", code == 1 and re.search(expected, said) and not kept, said)

    lab.fault({path: {"kind": "slow"}})
    process = subprocess.Popen(lab.command(*arguments, work / "killed"), env=lab.environment, stderr=subprocess.DEVNULL)
    # The slow file takes a minute: its beginning is there long before its end.
    begun = work / "killed/partial" / entry(manifests, target, "containerd")["digest"].split(":")[1]
    deadline = time.time() + 120
    while time.time() < deadline and not (begun.exists() and begun.stat().st_size > 0):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lab.fault({})
    lab.requests()
    code, said = lab.run("store", "verify", "--store", work / "killed")
    case("a killed fetch leaves a sound store", code == 0, said)
    code, said = lab.run(*arguments, work / "killed")
    resumed = any(request[1] == path and int(request[2]) > 0 for request in lab.requests())
    case("and the next one continues", code == 0 and resumed, said)


def doors(lab, manifests, work):
    """Authorities of the user's own, and proxies."""
    mirrors = lab.environment["VMBAKE_MIRRORS"]
    plain = re.search(r"http://127[.]0[.]0[.]1:(\d+)/", mirrors)
    port = tls_door(int(plain.group(1)), work)
    secure = mirrors.replace(plain.group(0), f"https://localhost:{port}/")
    arguments = ["fetch", "knd", "--manifest", manifests / "knd.debian-13.amd64.json", "--without-base", "--store"]
    code, said = lab.run(*arguments, work / "tls", VMBAKE_MIRRORS=secure)
    case("TLS by an unknown authority is refused", code == 1 and "invalid peer certificate" in said, said)
    code, said = lab.run(*arguments, work / "tls", VMBAKE_MIRRORS=secure, SSL_CERT_FILE=str(work / "ca.pem"))
    # Files of the Debian archive come from the host's mirror, whose authority that file does not have.
    site = [line for line in said.splitlines() if "crictl" in line]
    case("SSL_CERT_FILE names other authorities", code == 0 or any("fetched" in line for line in site), said)

    proxy = Proxy()
    url = f"http://127.0.0.1:{proxy.port}"
    code, said = lab.run(*arguments, work / "proxied", http_proxy=url, HTTP_PROXY=url, https_proxy=url, HTTPS_PROXY=url, ALL_PROXY=url)
    case("a proxy is used", any(target == f"127.0.0.1:{plain.group(1)}" for target in proxy.asked), f"{said}\n{proxy.asked}")
    before = len(proxy.asked)
    lab.run(*arguments, work / "direct", https_proxy=url, ALL_PROXY=url, no_proxy="127.0.0.1", NO_PROXY="127.0.0.1")
    case("but not for what no_proxy names", not any(target.startswith("127.0.0.1:") for target in proxy.asked[before:]))


def attack(lab, manifests, work):
    """Each attack on the update of one entry must be refused for its reason, and leave the manifest as it was."""
    version = {name: entry(manifests, "knd.debian-13.amd64", name)["version"] for name in ("containerd", "netsy") if name != "netsy"}
    bundle = f"/github.com/containerd/containerd/releases/download/v{version['containerd']}/containerd-{version['containerd']}-attestation.intoto.jsonl"
    artifact = {name: site_path(manifests, "knd.debian-13.amd64", name) for name in ("runc", "crictl", "kubelet", "nstance-agent", "fluent-bit")}
    other_crictl = lab.root / "site" / site_path(manifests, "knd.debian-13.arm64", "crictl").lstrip("/")
    netsy = entry(manifests, "knc.debian-13.amd64", "netsy")["proof"]["url"].replace("https://", "", 1)
    sums = entry(manifests, "knd.debian-13.amd64", "nstance-agent")["proof"]["url"].replace("https://", "/", 1)
    index = "/rekor.sigstore.dev/api/v1/index/retrieve"
    (lab.root / "attacks/empty").write_text("[]")

    def cosign(name):
        return {f"{artifact['kubelet']}.sig": lab.swap(f"kubelet.{name}.sig"), f"{artifact['kubelet']}.cert": lab.swap(f"kubelet.{name}.cert"),
                index: lab.swap(f"kubelet.{name}.index")}

    def program(name):
        files = {f"{artifact['kubelet']}{end}": lab.swap(f"kubelet.{name}{end}") for end in ("", ".sha256")}
        return {**files, **cosign(name)}

    cases = [
        ("a flipped byte", "runc", {artifact["runc"]: {"kind": "flip"}}, "expected digest .* found sha"),
        ("a swapped artifact", "crictl", {artifact["crictl"]: {"kind": "swap", "file": str(other_crictl)}}, "expected digest .* found sha"),
        ("a bundle by another identity", "containerd", {bundle: lab.swap("containerd.other-identity")}, "signed by .*ci.yml"),
        ("a bundle by another issuer", "containerd", {bundle: lab.swap("containerd.other-issuer")}, "identity issued by .*issuer.example.org"),
        ("a bundle of another authority", "containerd", {bundle: lab.swap("containerd.other-root")}, "signature verification failed"),
        ("a bundle that is cut", "containerd", {bundle: {"kind": "truncate"}}, "corrupt|proves"),
        ("a signature by another identity", "kubelet", cosign("other-identity"), "signed by .*attacker"),
        ("a signature by another issuer", "kubelet", cosign("other-issuer"), "identity issued by .*issuer.example.org"),
        ("a signature that is not in the log", "kubelet", {index: lab.swap("empty")}, "no log entry"),
        ("a signature of another file", "kubelet", {f"{artifact['kubelet']}.sig": lab.swap("kubelet.other-issuer.sig")}, "no log entry"),
        ("an older program of the same signer", "kubelet", program("older"), "has version v1.33.0, expected v"),
        ("another program of the same signer", "kubelet", program("other-program"), "cmd/kube-proxy, expected .*cmd/kubelet"),
        ("a program for another machine of the same signer", "kubelet", program("other-machine"), "for ELF64 AArch64, expected ELF64 x86-64"),
        ("an unsigned InRelease", "fluent-bit", {f"{FLUENTBIT}/InRelease": lab.swap("InRelease.unsigned")}, "not the start of a clearsigned message"),
        ("an InRelease by an unknown key", "fluent-bit", {f"{FLUENTBIT}/InRelease": lab.swap("InRelease.unknown-key")}, "key"),
        ("an older InRelease", "fluent-bit", {f"{FLUENTBIT}/InRelease": lab.swap("InRelease.older")}, "older than"),
        ("truncated Packages", "fluent-bit", {f"{FLUENTBIT}/main/binary-amd64/Packages.gz": {"kind": "truncate"}}, "bytes, expected"),
        ("a flipped package", "fluent-bit", {artifact["fluent-bit"]: {"kind": "flip"}}, "expected digest .* found sha"),
        ("a checksum file that names other files", "nstance-agent", {sums: {"kind": "swap", "file": str(lab.root / "site" / netsy)}}, "no checksum for"),
        ("an error page as checksum file", "nstance-agent", {sums: {"kind": "swap", "file": str(lab.root / "faults.json")}}, "not a valid checksum"),
        ("an endless checksum file", "nstance-agent", {sums: {"kind": "endless"}}, "larger than the limit"),
        ("a redirect loop", "crictl", {artifact["crictl"]: {"kind": "loop"}}, "redirects"),
        ("an image whose layer is swapped", "registry.k8s.io/pause", {}, "expected digest .* found sha"),
    ]
    for number, (name, only, faults, expected) in enumerate(cases):
        if only == "registry.k8s.io/pause":
            blobs = sorted((lab.root / "site/registry.k8s.io/v2/pause/blobs").iterdir(), key=lambda blob: blob.stat().st_size)
            faults = {f"/registry.k8s.io/v2/pause/blobs/{blob.name}": {"kind": "flip"} for blob in blobs[-2:]}
        refuse(lab, manifests, work / f"attack-{number}", name, only, faults, expected)
    trust = lab.root / "trust-expired"
    shutil.copytree(lab.root / "trust", trust)
    shutil.copy(lab.root / "attacks/expired-key.asc", trust / "fluentbit.asc")
    refuse(lab, manifests, work / "attack-expired", "an InRelease by a key that has expired", "fluent-bit",
           {f"{FLUENTBIT}/InRelease": lab.swap("InRelease.expired-key")}, "expired", trust="trust-expired")


def refuse(lab, manifests, work, name, only, faults, expected, trust="trust"):
    shutil.copytree(manifests, work / "manifests")
    before = texts(manifests)
    lab.fault(faults)
    code, said = lab.update(work / "manifests", work / "store", "knd", "--os", "debian-13", "--arch", "amd64", "--only", only, trust=trust)
    lab.fault({})
    case(f"update refuses {name}", code == 1 and re.search(expected, said) and texts(work / "manifests") == before, said)


def weaken(lab, manifests, store, work):
    """A manifest whose record is weaker than its source demands."""
    shutil.copytree(manifests, work / "weak")
    path = work / "weak/knd.debian-13.amd64.json"
    document = json.loads(path.read_text())
    document["vmconfig"]["dependencies"]["containerd"]["proof"] = {"type": "checksum", "url": "https://github.com/x"}
    path.write_text(json.dumps(document))
    for name, arguments in [("fetch", ["fetch", "knd"]), ("bake", ["bake", "knd", "--offline", "--out", work / "out"])]:
        code, said = lab.run(*arguments, "--manifest", path, "--store", store)
        case(f"{name} refuses a weaker proof", code == 1 and "requires a sigstore bundle" in said, said)
    code, said = lab.update(work / "weak", store, "knd", "--arch", "amd64")
    case("update proves it again", code == 0 and texts(work / "weak") == texts(manifests), said)


def forge(lab, manifests, store, work):
    """Manually replaced entries, with all their fields; the artifact is in the store."""
    target = "knd.debian-13.amd64"
    path = work / f"forged/{target}.json"
    shutil.copytree(manifests, path.parent)
    forged = work / "forged-store"
    shutil.copytree(store, forged)

    def put(content):
        digest = hashlib.sha256(content).hexdigest()
        (forged / "blobs/sha256" / digest).write_bytes(content)
        return f"sha256:{digest}"

    program = b"#!/bin/sh\n"
    for name, changes, expected in [
        ("fluent-bit", {}, "the manifest states digest"),
        ("fluent-bit", {"version": "99", "url": "https://packages.fluentbit.io/debian/trixie/pool/x.deb"}, "package fluent-bit 99 not found"),
        ("fluent-bit", {"evidence": [lab.swap("InRelease.unknown-key")["file"], None]}, "unknown key"),
        ("libpq5", {}, "the manifest states digest"),
        ("containerd", {}, "the bundle does not prove it"),
        ("containerd", {"evidence": [lab.swap("containerd.other-identity")["file"]]}, "the bundle does not prove it.*|signed by .*ci.yml"),
        ("kubelet", {}, "the signature does not prove it"),
        ("kubelet", {"identity": "attacker@example.org"}, "does not prove it"),
        ("kubelet", {"evidence": [None, None]}, "pins no evidence for the signature"),
        ("runc", {}, "the manifest states digest"),
        ("runc", {"proof": None}, "its source requires a checksum file"),
    ]:
        document = json.loads((manifests / path.name).read_text())
        pinned = document["vmconfig"]["dependencies"][name]
        pinned.update({"digest": put(program), "size": len(program)})
        for key, value in changes.items():
            if key == "proof":
                pinned["proof"] = value
            elif key in pinned:
                pinned[key] = value
            elif key == "evidence":
                # Other entries stay.
                old = pinned["proof"]["evidence"]
                documents = [was if file is None else put(pathlib.Path(file).read_bytes()) for file, was in zip(value, old)]
                pinned["proof"]["evidence"] = documents
                for file, digest, was in zip(value, documents, old):
                    if file:
                        known = document["vmconfig"]["evidence"]
                        known[digest] = {**known[was], "size": pathlib.Path(file).stat().st_size}
            else:
                pinned["proof"][key] = value
        path.write_text(json.dumps(document))
        for command in (["manifest", "show", path], ["fetch", "knd", "--manifest", path],
                        ["bake", "knd", "--offline", "--manifest", path, "--out", work / "forged-out"]):
            code, said = lab.run(*command, "--store", forged)
            what = ", ".join(changes) or "digest and size"
            case(f"{command[0]} refuses {name} with another {what}", code == 1 and f"{name}: verification failed" in said and
                 re.search(expected, said) and not list(work.glob("forged-out/*")), said)
    code, said = lab.update(path.parent, forged, "knd", "--arch", "amd64")
    case("update renews what was forged", code == 0 and texts(path.parent) == texts(manifests) and "renewing" in said, said)


def kill(lab, manifests, work):
    """A killed update keeps resolved entries, and the next one completes it."""
    path = site_path(manifests, "knc.debian-13.amd64", "containerd")
    lab.fault({path: {"kind": "slow"}})
    arguments = ["update", "knc", "--arch", "amd64", "--no-builtin=trust", "--trust", lab.root / "trust", "--manifests", work / "m", "--store", work / "s"]
    process = subprocess.Popen(lab.command(*arguments), env=lab.environment, stderr=subprocess.DEVNULL)
    half = work / "m/knc.debian-13.amd64.json"
    deadline = time.time() + 30
    while time.time() < deadline and not (half.exists() and len(json.loads(half.read_text())["vmconfig"]["dependencies"]) > 5):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lab.fault({})
    known = json.loads(half.read_text())["vmconfig"]["dependencies"]
    full = json.loads((manifests / half.name).read_text())["vmconfig"]["dependencies"]
    case("a killed update keeps what it has proven", 5 < len(known) < len(full) and all(full[name] == known[name] for name in known))
    code, said = lab.run("store", "verify", "--store", work / "s")
    case("and leaves a sound store", code == 0, said)
    code, said = lab.run(*arguments)
    case("and the next one completes it", code == 0 and half.read_bytes() == (manifests / half.name).read_bytes(), said)
    both = [subprocess.Popen(lab.command(*arguments[:7], "--manifests", work / "both", "--store", work / f"s{number}"),
                             env=lab.environment, stderr=subprocess.DEVNULL) for number in (1, 2)]
    codes = [process.wait() for process in both]
    case("two updates at once make the same manifest", codes == [0, 0] and
         (work / "both" / half.name).read_bytes() == (manifests / half.name).read_bytes())


def test_upstream(vmbake, tmp_path):
    """Each step goes on with the manifests and the store of the first."""
    lab, work = Lab(vmbake, tmp_path / "up"), tmp_path
    manifests, store = work / "manifests", work / "store"
    try:
        resolve(lab, manifests, store)
        keep(lab, manifests, store, work)
        fetch(lab, manifests, work)
        doors(lab, manifests, work)
        attack(lab, manifests, work)
        requested(lab, case, work / "requested")
        weaken(lab, manifests, store, work)
        forge(lab, manifests, store, work)
        (work / "kill").mkdir()
        kill(lab, manifests, work / "kill")
    finally:
        lab.close()
