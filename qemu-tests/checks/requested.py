"""What layers ask of upstreams themselves, from release sites on loopback: `examples/k3s`, layers with digests of their own, container
images; and every way in which a site, a layer or a manifest may lie about them. `upstream.py` runs it.
"""

import hashlib
import json
import pathlib

TOP = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = TOP / "examples"
K3S = "github.com/k3s-io/k3s/releases/download/v1.34.1+k3s1"
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
    """examples/k3s, proven by the checksum files beside the programs."""
    manifests, store = work / "k3s", work / "k3s-store"
    arguments = (manifests, store, "k3s", "--layers", EXAMPLES)
    code, said = lab.update(*arguments, "--arch", "amd64,arm64")
    case("examples/k3s resolves for both architectures", code == 0 and len(list(manifests.glob("*.json"))) == 2, said)
    lab.requests()
    code, said = lab.update(*arguments)
    case("a second update of examples/k3s asks nobody", code == 0 and not lab.requests(), said)
    for arch, name in (("amd64", "k3s"), ("arm64", "k3s-arm64")):
        path = manifests / f"k3s.debian-13.{arch}.json"
        entry = json.loads(path.read_text())["vmconfig"]["dependencies"]["k3s"]
        expected = hashlib.sha256((lab.root / "site" / K3S / name).read_bytes()).hexdigest()
        case(f"k3s for {arch} is {name}, by its checksum file", entry["digest"] == f"sha256:{expected}" and
             entry["proof"]["url"].endswith(f"/sha256sum-{arch}.txt"), json.dumps(entry))
        code, said = lab.run("manifest", "show", path, "--store", store)
        case(f"k3s for {arch} is proven anew", code == 0 and "not signed: by a checksum file" in said and "layer  k3s" in said, said)
    for name, fault in (("a flipped byte", {"kind": "flip"}), ("the program of another architecture", {"kind": "swap", "file": str(lab.root / "site" / K3S / "k3s-arm64")})):
        lab.fault({f"/{K3S}/k3s": fault})
        code, said = lab.update(manifests, work / f"k3s-{fault['kind']}", "k3s", "--layers", EXAMPLES, "--refresh")
        lab.fault({})
        case(f"examples/k3s refuses {name}", code == 1 and "has digest" in said, said)


def stated(ground, case):
    """A digest that the layer states."""
    ground.download()
    code, said = ground.update()
    case("a download with a stated digest is pinned", code == 0 and ground.pinned()["dependencies"]["k3s"]["proof"] == {"type": "stated"}, said)
    code, said = ground.lab.run("manifest", "show", ground.manifests / "box.debian-13.amd64.json", "--store", ground.store)
    case("and shown as stated by the layer", code == 0 and "by the digest that its layer states" in said and "layer  box" in said, said)
    before = ground.pinned()
    ground.lab.fault({f"/{K3S}/k3s": {"kind": "flip"}})
    code, said = ground.lab.update(ground.manifests, ground.work / "flipped", "box", "--layers", ground.layers, "--refresh")
    ground.lab.fault({})
    case("a download with another digest is refused, naming both", code == 1 and f"not sha256:{ground.digest('k3s')}" in said and
         "has digest sha256:" in said and ground.pinned() == before, said)
    ground.download(url={"amd64": f"https://{K3S}/k3s-arm64"}, sha256=ground.digest("k3s-arm64"))
    code, said = ground.update()
    case("a download for another machine is refused", code == 1 and "for ELF64 AArch64, not for ELF64 x86-64" in said, said)

    for name, keys in [("digest", {"sha256": ground.digest("k3s-arm64")}), ("address", {"url": f"https://{K3S}/k3s"}),
                       ("proof", {"sha256": None, "checksums": f"https://{K3S}/sha256sum-amd64.txt"})]:
        ground.download(**keys)
        code, said = ground.bake()
        case(f"a bake refuses a layer with another {name} than the manifest was made for", code == 1 and
             "layer box asks for other downloads" in said and "hint: `vmbake update KIND`" in said and not list(ground.work.glob("out/*")), said)
    code, said = ground.update()
    case("update pins what the layer asks for now", code == 0 and ground.pinned()["dependencies"]["k3s"]["proof"]["type"] == "checksum", said)


def refused(ground, case):
    """What a layer may not ask for."""
    ground.download(url=f"http://{K3S}/k3s")
    code, said = ground.update()
    case("a download without TLS is refused", code == 1 and "the address is not https" in said and "layer.json:1:" in said, said)
    ground.download(sha256=None)
    code, said = ground.update()
    case("a download without a proof is refused", code == 1 and "nothing proves it" in said, said)

    ground.download()
    upstream = {"type": "binary", "version": {"pinned": "1"}, "url": "https://github.com/x", "proof": "first-use"}
    sources = ground.work / "sources.json"
    sources.write_text(json.dumps({"dependencies": [{"name": "k3s", "kinds": ["box"], "upstream": upstream}]}))
    code, said = ground.update("--sources", sources)
    case("a download may not be called as an artifact of the sources", code == 1 and
         "download k3s of layer box has the name of an artifact of the sources" in said, said)
    box = json.loads((ground.layers / "box/layer.json").read_text())
    ground.layer("more", downloads=box["downloads"])
    ground.layer("box", requires=["more"], downloads=box["downloads"])
    code, said = ground.update()
    case("two layers may not bring downloads of one name", code == 1 and "k3s is installed by the layers more and box" in said, said)

    known = json.loads((TOP / "manifests/sources.json").read_text())["dependencies"]
    signed = next(entry["upstream"] for entry in known if entry["name"] == "containerd")
    ground.download(url=signed["url"], version="2.2.1")
    code, said = ground.update()
    case("a digest does not take the place of a signature", code == 1 and "demands less than artifact containerd of the sources" in said, said)


def images(ground, case):
    """Container images of a layer."""
    ground.layer("box", container_images=[PAUSE])
    code, said = ground.update()
    case("container images without a place are refused", code == 1 and "no layer of box says in `images`" in said, said)
    ground.layer("box", container_images=[PAUSE], images="/var/lib/container-images/oci")
    code, said = ground.update()
    case("container images of a layer are pinned", code == 0 and [image["image"] for image in ground.pinned()["images"]] == [PAUSE] and
         "k3s" not in ground.pinned()["dependencies"], said)
    blobs = sorted((ground.lab.root / "site/registry.k8s.io/v2/pause/blobs").iterdir(), key=lambda blob: blob.stat().st_size)
    ground.lab.fault({f"/registry.k8s.io/v2/pause/blobs/{blob.name}": {"kind": "flip"} for blob in blobs[-2:]})
    code, said = ground.lab.update(ground.manifests, ground.work / "swapped", "box", "--layers", ground.layers, "--refresh")
    ground.lab.fault({})
    case("a container image whose layer is swapped is refused", code == 1 and "has digest" in said, said)
    ground.layer("box", container_images=[], images="/var/lib/container-images/oci")
    code, said = ground.bake()
    case("a bake refuses a layer with other container images", code == 1 and "layer box asks for other downloads or container images" in said, said)


def requested(lab, case, work):
    work.mkdir()
    example(lab, case, work)
    ground = Ground(lab, work)
    stated(ground, case)
    refused(ground, case)
    images(ground, case)
