"""knc, baked with zlib clusters, with its manifest for Podplane's command line, and downloaded with it from a server on loopback.

The server has the two files that the manifest names, and nothing else. The downloads are checked as by the command line,
the disk is read by a reader that knows zlib alone, and the node is started below systemd-nspawn by scripts as the command line renders them.
Needs root, for loop mounts.
"""

import functools
import hashlib
import json
import urllib.request

import pytest

from harness import disk, life, run, web, zlib_qcow2
from harness.report import case
from harness.upstream import bake

ARCH = "amd64"
LENGTHS = {"sha256": 64, "sha512": 128}


def tell(*command):
    done = run.run(*command)
    return done.returncode, done.stdout, done.stderr


class Server(web.Server):
    """Serves these files of a folder by their names below /images/, and records requests."""

    def __init__(self, folder, names):
        self.asked, self.names = [], names
        super().__init__(functools.partial(Handler, directory=folder))
        self.url = f"http://127.0.0.1:{self.server_port}/images"


class Handler(web.Files):
    def do_GET(self):
        self.server.asked.append(self.path)
        name = self.path.removeprefix("/images/")
        if name not in self.server.names:
            return self.send_error(404)
        self.path = f"/{name}"
        return super().do_GET()


def is_stub(name, dependency):
    return name == "vmconfig" and not dependency["url"] and not dependency["digest"]


def download(manifest, folder):
    """Downloads of the command line: {name: file}. Raises ValueError where it would refuse the manifest."""
    config, found = manifest["vmconfig"], {}
    for name, item in [("os-image", config["os"]["image"]), *config["dependencies"].items()]:
        if is_stub(name, item):
            continue
        algorithm, _, digest = item["digest"].partition(":")
        if LENGTHS.get(algorithm) != len(digest) or not item["url"] or item["size"] <= 0 or not item["version"]:
            raise ValueError(f"{name}: {item}")
        target = folder / name / item["version"] / item["url"].rsplit("/", 1)[1]
        target.parent.mkdir(parents=True)
        hashed = hashlib.new(algorithm)
        with urllib.request.urlopen(item["url"]) as answer, open(target, "wb") as file:
            while part := answer.read(1 << 20):
                hashed.update(part)
                file.write(part)
        if hashed.hexdigest() != digest or target.stat().st_size != item["size"]:
            raise ValueError(f"{name}: {hashed.hexdigest()}, {target.stat().st_size} bytes, not {item}")
        found[name] = target
    for image in config["images"]:
        if not image["image"] or not image["digest"] or image["size"] <= 0 or image.keys() - {"image", "digest", "size", "platform", "index"}:
            raise ValueError(f"image: {image}")
    return found


def boot_files(raw, boot, work):
    """Kernel and initial RAM disk as the command line reads them out of the disk, by debugfs: whether they are those of the manifest."""
    for name in ("kernel", "initrd"):
        entry = boot[name]
        begin = disk.partitions(raw)[entry["partition"]].start
        run.must("debugfs", "-R", f"dump {entry['path']} {work / name}", f"{raw}?offset={begin}")
        found = "sha256:" + hashlib.sha256((work / name).read_bytes()).hexdigest()
        case(f"{name}: what the manifest says of it", found == entry["digest"] and entry["partition"] > 0, (found, entry))
    case("command line of the kernel", "root=" in boot["cmdline"], boot["cmdline"])


def make(vmbake, image, url, *more):
    return tell(vmbake, "podplane", "manifest", image, "--url", url, *more)


def refusals(vmbake, image, work):
    """Unsuitable images are refused, and nothing is written."""
    out = work / "refused.json"
    for name, path, url, expected in (
            ("a raw image", bake.image("knc", ARCH), "https://a.example", "expected a qcow2 image, found raw"),
            ("another address", image, "file:///images", "expected an http:// or https:// URL")):
        code, _, said = make(vmbake, path, url, "--out", out)
        case(f"refused: {name}", code == 1 and expected in said and not out.exists(), said)
    sidecar = image.with_suffix(".json")
    kept = sidecar.read_bytes()
    sidecar.write_bytes(kept.replace(b'"version": "dev"', b'"version": "1"'))
    code, _, said = make(vmbake, image, "https://a.example", "--out", out)
    case("refused: the manifest of another image", code == 1 and "differs from that in" in said and not out.exists(), said)
    sidecar.write_bytes(kept)


def releases(vmbake, image, work):
    """An image is compared with the release next to it, as far as there is one."""
    out, folder = work / "released.json", image.parent
    sums, origins, inputs = folder / "SHA256SUMS", image.with_suffix(".origin.json"), image.with_suffix(".inputs.json")
    kept = {path: path.read_bytes() for path in (sums, origins, inputs)}

    def refused(name, expected):
        code, printed, said = make(vmbake, image, "https://a.example", "--out", out)
        case(f"refused: {name}", code == 1 and not printed and expected in said and "\nhint: " in said and not out.exists(), said)
        for path, content in kept.items():
            path.write_bytes(content)

    digest = hashlib.sha256(image.read_bytes()).hexdigest().encode()
    sums.write_bytes(kept[sums].replace(digest, b"0" * 64))
    refused("an image that is not the listed one", f"{image}: has sha256:{digest.decode()}, but the list states sha256:{'0' * 64}")
    inputs.write_bytes(kept[inputs] + b"\n")
    refused("another document than the listed one", f"{inputs}: has sha256:")
    sums.unlink()
    origins.write_bytes(kept[origins].replace(b'"version":"1"', b'"version":"2"', 1))
    refused("the origins of another image, without a list", f"{origins}: differs from the record of origins in {image}")
    for path in kept:
        path.unlink()
    code, _, said = make(vmbake, image, "https://a.example", "--out", out)
    case("an image and its manifest alone are sufficient", code == 0 and out.exists() and not said, said)
    for path, content in kept.items():
        path.write_bytes(content)


def others(vmbake, work):
    """Images that are no control plane, or no machine of a cluster."""
    name = bake.target("knd", ARCH)
    raw, image, out = work / f"{name}.raw", work / f"{name}.qcow2", work / "other.json"
    tell("cp", "--sparse=always", bake.image("knd", ARCH), raw)
    image.with_suffix(".json").write_bytes(bake.image("knd", ARCH).with_suffix(".json").read_bytes())
    tell(vmbake, "convert", raw, "--format", "qcow2", "--compression", "zlib", "-o", image)
    code, _, said = make(vmbake, image, "https://a.example", "--out", out)
    case("knd: a note says that a local cluster waits for Netsy", code == 0 and out.exists() and "it has no Netsy" in said, said)
    begin = disk.partitions(raw)[1].start
    tell("debugfs", "-w", "-R", "rm /opt/nstance-agent/bin/nstance-agent", f"{raw}?offset={begin}")
    tell(vmbake, "convert", raw, "--format", "qcow2", "--compression", "zlib", "-o", image, "--force")
    out.unlink()
    code, _, said = make(vmbake, image, "https://a.example", "--out", out)
    case("refused: no agent", code == 1 and "cannot register with a cluster" in said and "\nhint: use an image of a kind" in said and not out.exists(), said)
    raw.unlink()
    image.unlink()


@pytest.mark.boot
@pytest.mark.needs("root")
def test_podplane_download(vmbake, base, work):
    bake.bake(vmbake, {ARCH: base})
    out = work / "out"
    code, said = bake.baking(vmbake, "knc", ARCH, base, "--out", out, "--format", "qcow2", "--compression", "zlib")
    case("a bake with zlib clusters", code == 0, said)
    image = out / f"{bake.target('knc', ARCH)}.qcow2"
    server = Server(str(out), {image.name, image.with_suffix(".json").name})
    name = f"vmconfig_knc_{bake.OS}_{ARCH}.json"
    code, printed, said = make(vmbake, image, server.url + "/")
    text = (out / name).read_bytes() if (out / name).exists() else b""
    case("the manifest is written next to the image", code == 0 and printed.endswith(f"  {out / name}\n") and not said, printed + said)
    case("an existing one stays", make(vmbake, image, server.url)[0] == 1)
    make(vmbake, image, server.url, "--force")
    case("a second one is the same, byte for byte", (out / name).read_bytes() == text)
    manifest = json.loads(text)
    case("sorted, two spaces, one newline", text.decode() == json.dumps(manifest, indent=2, sort_keys=True) + "\n", text.decode())
    stub = manifest["vmconfig"]["dependencies"].get("vmconfig", {})
    case("vmconfig is a stub", is_stub("vmconfig", stub), stub)

    found = download(manifest, work / "cache")
    case("two files are downloaded, each once", sorted(server.asked) == sorted(f"/images/{one}" for one in server.names), server.asked)
    case("a machine downloads one", sorted(found) == ["os-image", "vmbake-manifest"], found)
    server.close()
    raw = work / "knc.raw"
    compressed, plain = zlib_qcow2.to_raw(found["os-image"], raw)
    case("a reader that knows only zlib reads the disk", compressed > 1000, (compressed, plain))
    code, printed, said = tell("cmp", raw, bake.image("knc", ARCH))
    case("it is the disk of the raw image", code == 0, printed + said)
    code, printed, said = tell("qemu-img", "check", "-f", "qcow2", found["os-image"])
    case("qemu-img finds no fault", code == 0 and "No errors" in printed and "leak" not in printed, printed + said)
    boot_files(raw, manifest["vmconfig"]["os"]["boot"], work)
    refusals(vmbake, image, work)
    releases(vmbake, image, work)
    others(vmbake, work)

    # With a download in /opt/podplane/artifacts.
    life.judge([raw], ["script", "handed"])
