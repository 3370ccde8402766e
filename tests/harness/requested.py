"""Downloads of layers from release sites on loopback: `examples/k3s`, layers with explicit digests, container
images; and attacks by a site, a layer or a manifest. `test_upstream.py` runs it.
"""

import hashlib
import json
import shutil

from harness.paths import ROOT

EXAMPLES = ROOT / "examples"
K3S = "github.com/k3s-io/k3s/releases/download/v1.34.1+k3s1"
SSM, SSM_VERSION = "s3.us-east-1.amazonaws.com/amazon-ssm-us-east-1", "3.3.2299.0"
PAUSE = "registry.k8s.io/pause:3.10.1"


class Ground:
    """A folder of layers, manifests and a store; the layer `box` is written anew for each question."""

    def __init__(self, lab, work):
        self.lab, self.work = lab, work
        self.layers, self.manifests, self.store = work / "layers", work / "manifests", work / "store"
        self.layer("box")

    def layer(self, name, **keys):
        (self.layers / name).mkdir(parents=True, exist_ok=True)
        head = {"name": name, "version": "1", "description": "A layer of this test.", "os": ["debian-13"]}
        (self.layers / name / "layer.json").write_text(json.dumps({**head, **keys}))

    def download(self, **keys):
        """Lets the layer ask for k3s with these keys."""
        said = {"url": f"https://{K3S.replace('1.34.1+k3s1', '{version}')}/k3s", "version": "1.34.1+k3s1", "sha256": self.digest("k3s"),
                "install": {"type": "file", "path": "/usr/local/bin/k3s", "mode": "0755"}}
        said = {key: value for key, value in {**said, **keys}.items() if value is not None}
        self.layer("box", downloads={"k3s": said})

    def digest(self, name):
        return hashlib.sha256((self.lab.root / "site" / K3S / name).read_bytes()).hexdigest()

    def update(self, *more, kind="box"):
        return self.lab.update(self.manifests, self.store, kind, "--layers", self.layers, *more)

    def bake(self):
        return self.lab.run("bake", "box", "--offline", "--manifests", self.manifests, "--layers", self.layers, "--store", self.store,
                            "--out", self.work / "out")

    def pinned(self):
        return json.loads((self.manifests / "box.debian-13.amd64.json").read_text())["vmconfig"]


def example(lab, case, work):
    """examples/k3s, proven by upstream checksum files."""
    manifests, store = work / "k3s", work / "k3s-store"
    arguments = (manifests, store, "k3s", "--layers", EXAMPLES)
    code, said = lab.update(*arguments, "--arch", "amd64,arm64")
    case("examples/k3s resolves for both architectures", code == 0 and len(list(manifests.glob("*.json"))) == 2, said)
    lab.requests()
    code, said = lab.update(*arguments)
    case("a second update of examples/k3s sends no requests", code == 0 and not lab.requests(), said)
    for arch, name in (("amd64", "k3s"), ("arm64", "k3s-arm64")):
        path = manifests / f"k3s.debian-13.{arch}.json"
        entry = json.loads(path.read_text())["vmconfig"]["dependencies"]["k3s"]
        expected = hashlib.sha256((lab.root / "site" / K3S / name).read_bytes()).hexdigest()
        case(f"k3s for {arch} is {name}, by its checksum file", entry["digest"] == f"sha256:{expected}" and
             entry["proof"]["url"].endswith(f"/sha256sum-{arch}.txt"), json.dumps(entry))
        code, said = lab.run("manifest", "show", path, "--store", store)
        case(f"k3s for {arch} is proven anew", code == 0 and "by a checksum file of the site, not signed" in said and "layer  k3s" in said, said)
    for name, fault in (("a flipped byte", {"kind": "flip"}), ("the program of another architecture", {"kind": "swap", "file": str(lab.root / "site" / K3S / "k3s-arm64")})):
        lab.fault({f"/{K3S}/k3s": fault})
        code, said = lab.update(manifests, work / f"k3s-{fault['kind']}", "k3s", "--layers", EXAMPLES, "--refresh")
        lab.fault({})
        case(f"examples/k3s refuses {name}", code == 1 and "expected digest" in said, said)


def stated(ground, case):
    """A digest that the layer states."""
    ground.download()
    code, said = ground.update()
    case("a download with a stated digest is pinned", code == 0 and ground.pinned()["dependencies"]["k3s"]["proof"] == {"type": "stated"}, said)
    code, said = ground.lab.run("manifest", "show", ground.manifests / "box.debian-13.amd64.json", "--store", ground.store)
    case("and shown as stated by the layer", code == 0 and "by the digest in its layer, not signed" in said and "layer  box" in said, said)
    before = ground.pinned()
    ground.lab.fault({f"/{K3S}/k3s": {"kind": "flip"}})
    code, said = ground.lab.update(ground.manifests, ground.work / "flipped", "box", "--layers", ground.layers, "--refresh")
    ground.lab.fault({})
    case("a download with another digest is refused, naming both", code == 1 and f"expected digest sha256:{ground.digest('k3s')}" in said and
         "found sha256:" in said and ground.pinned() == before, said)
    ground.download(url={"amd64": f"https://{K3S}/k3s-arm64"}, sha256=ground.digest("k3s-arm64"))
    code, said = ground.update()
    case("a download for another machine is refused", code == 1 and "for ELF64 AArch64, expected ELF64 x86-64" in said, said)

    for name, keys in [("digest", {"sha256": ground.digest("k3s-arm64")}), ("address", {"url": f"https://{K3S}/k3s"}),
                       ("proof", {"sha256": None, "checksums": f"https://{K3S}/sha256sum-amd64.txt"})]:
        ground.download(**keys)
        code, said = ground.bake()
        case(f"a bake refuses a layer with another {name} than the manifest was made for", code == 1 and
             "layer box requests other downloads" in said and "hint: run `vmbake update KIND`" in said and not list(ground.work.glob("out/*")), said)
    code, said = ground.update()
    case("update pins what the layer asks for now", code == 0 and ground.pinned()["dependencies"]["k3s"]["proof"]["type"] == "checksum", said)


def refused(ground, case):
    """Refused requests of a layer."""
    ground.download(url=f"http://{K3S}/k3s")
    code, said = ground.update()
    case("a download without TLS is refused", code == 1 and "the URL is not https" in said and "layer.json:1:" in said, said)
    ground.download(sha256=None)
    code, said = ground.update()
    case("a download without a proof is refused", code == 1 and "no proof: add" in said, said)

    ground.download()
    upstream = {"type": "binary", "version": {"pinned": "1"}, "url": "https://github.com/x", "proof": "first-use"}
    sources = ground.work / "sources.json"
    sources.write_text(json.dumps({"dependencies": [{"name": "k3s", "kinds": ["box"], "upstream": upstream}]}))
    code, said = ground.update("--sources", sources)
    case("a download may not be called as an artifact of the sources", code == 1 and
         "download k3s of layer box has the same name as an artifact in the sources" in said, said)
    box = json.loads((ground.layers / "box/layer.json").read_text())
    ground.layer("more", downloads=box["downloads"])
    ground.layer("box", requires=["more"], downloads=box["downloads"])
    code, said = ground.update()
    case("two layers may not bring downloads of one name", code == 1 and "k3s is installed by the layers more and box" in said, said)

    known = json.loads((ROOT / "manifests/sources.json").read_text())["dependencies"]
    signed = next(entry["upstream"] for entry in known if entry["name"] == "containerd")
    ground.download(url=signed["url"], version="2.2.1")
    code, said = ground.update()
    case("a digest does not take the place of a signature", code == 1 and "requires a weaker proof than artifact containerd of the sources" in said, said)


def signed(ground, case):
    """The built-in layer amazon-ssm-agent, proven by a detached OpenPGP signature."""
    lab, site = ground.lab, ground.lab.root / "site"
    deb = f"/{SSM}/{SSM_VERSION}/debian_amd64/amazon-ssm-agent.deb"
    ground.layer("box", requires=["amazon-ssm-agent"])
    code, said = ground.update()
    entry = ground.pinned()["dependencies"].get("amazon-ssm-agent", {}) if code == 0 else {}
    proof = entry.get("proof", {})
    case("a download with an OpenPGP signature is pinned", code == 0 and entry["version"] == SSM_VERSION and proof["type"] == "openpgp"
         and len(proof["signers"]) == 1 and len(proof["evidence"]) == 1, said)
    manifest = ground.manifests / "box.debian-13.amd64.json"
    code, said = lab.run("manifest", "show", manifest, "--store", ground.store)
    case("and proven anew", code == 0 and f"by the signature of OpenPGP key {proof['signers'][0]}" in said, said)
    code, said = lab.run("fetch", "box", "--manifests", ground.manifests, "--layers", ground.layers, "--store", ground.work / "empty-signed")
    case("an empty store gets the file and its signature", code == 0, said)

    def stale(name, fault, expected):
        lab.fault(fault)
        code, said = lab.update(ground.manifests, ground.work / f"ssm-{name}", "box", "--layers", ground.layers, "--refresh")
        lab.fault({})
        case(f"an OpenPGP signature: {name} is refused", code == 1 and expected in said, said)

    def swap(path):
        return {"kind": "swap", "file": str(site / path)}

    older = f"{SSM}/3.2.1.0/debian_amd64/amazon-ssm-agent.deb"
    stale("a flipped byte of the file", {deb: {"kind": "flip"}}, "bad signature")
    stale("a flipped byte of the signature", {f"{deb}.sig": {"kind": "flip"}}, "does not prove the artifact")
    stale("the signature of another release", {f"{deb}.sig": swap(f"{older}.sig")}, "bad signature")
    stale("a missing signature", {f"{deb}.sig": {"kind": "status", "status": 404}}, "404")
    text = manifest.read_text()
    for place, found in (("3.2.1.0", "amazon-ssm-agent 3.2.1.0-1"), ("other", f"other {SSM_VERSION}-1")):
        path = f"{SSM}/{place}/debian_amd64/amazon-ssm-agent.deb"
        lab.fault({deb: swap(path), f"{deb}.sig": swap(f"{path}.sig")})
        ground.update("--refresh")
        lab.fault({})
        code, said = ground.bake()
        case(f"a bake refuses the signed package {found} in place of another", code == 1 and
             f"expected the package amazon-ssm-agent {SSM_VERSION}, found {found}" in said and not list(ground.work.glob("out/*")), said)
    manifest.write_text(text)
    for name, change in (("another signer", (proof["signers"][0], "0" * 40)), ("another time of signing", (proof["signed"], "2020-01-01T00:00:00Z")),
                         ("another keyring", ("amazon-ssm-agent.asc", "fluentbit.asc"))):
        manifest.write_text(text.replace(*change))
        code, said = lab.run("manifest", "show", manifest, "--store", ground.store)
        case(f"a manifest with {name} is refused", code == 1, said)
    manifest.write_text(text)
    trust = ground.work / "trust"
    shutil.copytree(lab.root / "trust", trust)
    shutil.copy(trust / "fluentbit.asc", trust / "amazon-ssm-agent.asc")
    code, said = lab.run("manifest", "show", manifest, "--store", ground.store, "--no-builtin=trust", "--trust", trust)
    case("a key that is not trusted proves nothing", code == 1 and "no valid signature of a trusted key" in said, said)
    ground.layer("box", downloads={"x": {"url": "https://a.example/x", "version": "1", "proof": {"openpgp": {"signature": "{url}.sig", "keyring": "../x"}},
                                         "install": {"type": "file", "path": "/opt/x", "mode": "0644"}}})
    code, said = ground.update()
    case("a keyring outside of trust/ is refused", code == 1 and "keyring is not the name of a file in trust/" in said, said)


def images(ground, case):
    """Container images of a layer."""
    ground.layer("box", container_images=[PAUSE])
    code, said = ground.update()
    case("container images without a place are refused", code == 1 and "no layer of box sets their directory with `images`" in said, said)
    ground.layer("box", container_images=[PAUSE], images="/var/lib/container-images/oci")
    code, said = ground.update()
    case("container images of a layer are pinned", code == 0 and [image["image"] for image in ground.pinned()["images"]] == [PAUSE] and
         "k3s" not in ground.pinned()["dependencies"], said)
    blobs = sorted((ground.lab.root / "site/registry.k8s.io/v2/pause/blobs").iterdir(), key=lambda blob: blob.stat().st_size)
    ground.lab.fault({f"/registry.k8s.io/v2/pause/blobs/{blob.name}": {"kind": "flip"} for blob in blobs[-2:]})
    code, said = ground.lab.update(ground.manifests, ground.work / "swapped", "box", "--layers", ground.layers, "--refresh")
    ground.lab.fault({})
    case("a container image whose layer is swapped is refused", code == 1 and "expected digest" in said, said)
    ground.layer("box", container_images=[], images="/var/lib/container-images/oci")
    code, said = ground.bake()
    case("a bake refuses a layer with other container images", code == 1 and "layer box requests other downloads or container images" in said, said)


def requested(lab, case, work):
    work.mkdir()
    example(lab, case, work)
    ground = Ground(lab, work)
    stated(ground, case)
    refused(ground, case)
    signed(ground, case)
    images(ground, case)
