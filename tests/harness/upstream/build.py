#!/usr/bin/env python3
"""build.py OUT: creates the files of all upstreams of knd and knc, below OUT/site/<host>/, signed with generated keys.

OUT/trust holds the trust anchors to go with it. The Debian archive is not among the sites: the real one is used.
OUT/attacks has an attacker's replacements of some files. serve.py serves it all.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time

from harness.paths import ROOT
from harness.upstream.debs import SSM_CONFFILES, SSM_SCRIPTS, deb, package
from harness.upstream.pki import Pki
from harness.upstream.programs import Programs, release

ARCHES = ["amd64", "arm64"]
VERSIONS = {
    "nstance": "0.4.1", "netsy": "0.7.2", "containerd": "2.2.1", "runc": "1.4.0", "crictl": "1.34.0", "cni-plugins": "1.8.0",
    "kube2iam": "0.15.0", "zot": "2.1.11", "kubernetes": "1.34.2", "fluent-bit": "4.2.0", "pause": "3.10.1", "image": "20261110-2299", "k3s": "1.34.1+k3s1", "ssm": "3.3.2299.0",
}
GITHUB = "https://token.actions.githubusercontent.com"
CONTAINERD = "https://github.com/containerd/containerd/.github/workflows/release.yml@refs/tags/v{}"
KUBERNETES = ("krel-staging@k8s-releng-prod.iam.gserviceaccount.com", "https://accounts.google.com")
SYSTEMS = {"trixie": "debian-13", "bookworm": "debian-12"}


def tar_gz(members):
    """A tar archive of {name: content}, of programs; the same bytes on every run."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), 0o755, 1_700_000_000
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=1, mtime=0)


def sums(files, algorithm, marker="  "):
    return "".join(f"{hashlib.new(algorithm, content).hexdigest()}{marker}{name}\n" for name, content in files.items())


class Site:
    """The files of all hosts."""

    def __init__(self, root):
        self.root = root

    def put(self, path, content):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def release(self, repository, tag, files):
        for name, content in files.items():
            self.put(f"github.com/{repository}/releases/download/{tag}/{name}", content)
        self.put(f"api.github.com/repos/{repository}/releases/latest",
                 json.dumps({"tag_name": tag, "assets": [{"name": name} for name in files]}))


def github(site, programs, versions, pki, now):
    def both(pattern, content):
        return {pattern.format(arch): content(programs[arch]) for arch in ARCHES}

    for name, repository in (("nstance", "nstance-dev/nstance"), ("netsy", "netsy-dev/netsy")):
        version = versions[name]
        program = "nstance-agent" if name == "nstance" else name
        files = both(f"{program}_{version}_linux_{{}}.tar.gz",
                     lambda p, n=program, v=version: tar_gz({n: p.standin(n, v), "LICENSE": b"-\n"}))
        site.release(repository, f"v{version}", {**files, f"{name}_{version}_checksums.txt": sums(files, "sha512")})

    version = versions["kube2iam"]
    files = both(f"kube2iam_{version}_linux_{{}}.tar.gz", lambda p: tar_gz({"kube2iam": p.standin("kube2iam", version)}))
    site.release("podplane/kube2iam-binaries", version, {**files, f"kube2iam_{version}_checksums.txt": sums(files, "sha512")})

    version = versions["runc"]
    files = both("runc.{}", lambda p: p.real("runc") + f"\n{versions['runc']}\n".encode())
    # Clear-signed upstream, by keys that are not pinned.
    text = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{sums(files, 'sha256')}-----BEGIN PGP SIGNATURE-----\n\n-\n-----END PGP SIGNATURE-----\n"
    site.release("opencontainers/runc", f"v{version}", {**files, "runc.sha256sum": text.encode()})

    version = versions["crictl"]
    files = both(f"crictl-v{version}-linux-{{}}.tar.gz", lambda p: tar_gz({"crictl": p.standin("crictl", version)}))
    bare = {f"{name}.sha256": (hashlib.sha256(content).hexdigest() + "\n").encode() for name, content in files.items()}
    site.release("kubernetes-sigs/cri-tools", f"v{version}", {**files, **bare})

    version = versions["cni-plugins"]
    files = both(f"cni-plugins-linux-{{}}-v{version}.tgz", lambda p: tar_gz({f"./{n}": c for n, c in p.plugins().items()}))
    checksums = {f"{name}.sha256": sums({name: content}, "sha256").encode() for name, content in files.items()}
    site.release("containernetworking/plugins", f"v{version}", {**files, **checksums})

    version = versions["zot"]
    files = both("zot-linux-{}-minimal", lambda p: p.standin("zot", version))
    site.release("project-zot/zot", f"v{version}", {**files, "checksums.sha256.txt": sums(files, "sha256", " *").encode()})

    # A layer of `examples` asks for it, no source.
    version = versions["k3s"]
    named = {"amd64": "k3s", "arm64": "k3s-arm64"}
    files = {named[arch]: programs[arch].standin("k3s", version) for arch in ARCHES}
    lists = {f"sha256sum-{arch}.txt": sums({name: files[name]}, "sha256").encode() for arch, name in named.items()}
    site.release("k3s-io/k3s", f"v{version}", {**files, **lists})

    version = versions["containerd"]
    names = ["containerd", "containerd-shim-runc-v2", "ctr"]
    files = both(f"containerd-{version}-linux-{{}}.tar.gz",
                 lambda p: tar_gz({**{f"bin/{n}": p.real(n) for n in names}, "bin/containerd-stress": p.standin("stress", version)}))
    checksums = {f"{name}.sha256sum": sums({name: content}, "sha256").encode() for name, content in files.items()}
    subjects = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    other = pki.attest({"containerd-static.tar.gz": "00" * 32}, CONTAINERD.format(version), GITHUB, now)
    bundle = pki.attest(subjects, CONTAINERD.format(version), GITHUB, now)
    lines = "".join(json.dumps(line) + "\n" for line in (other, bundle))
    site.release("containerd/containerd", f"v{version}",
                 {**files, **checksums, f"containerd-{version}-attestation.intoto.jsonl": lines.encode()})
    site.put(f"raw.githubusercontent.com/containerd/containerd/v{version}/internal/cri/config/config.go",
             f'package config\n\nconst (\n\tDefaultSandboxImage = "registry.k8s.io/pause:{versions["pause"]}"\n)\n')


def kubernetes(site, programs, versions, pki, now):
    version = versions["kubernetes"]
    index = {}
    site.put("dl.k8s.io/release/stable.txt", f"v{version}")
    for arch in ARCHES:
        for name in ("kubelet", "kubectl", "kube-apiserver", "kube-scheduler", "kube-controller-manager"):
            standin = programs[arch].standin(name, version)
            content = release(programs[arch].real("kubectl") + standin[-80:] if name == "kubectl" else standin, name, version, arch)
            path = f"dl.k8s.io/release/v{version}/bin/linux/{arch}/{name}"
            signature, certificate, uuid, entry = pki.sign_blob(content, *KUBERNETES, now)
            site.put(path, content)
            site.put(f"{path}.sha256", hashlib.sha256(content).hexdigest())
            site.put(f"{path}.sig", signature)
            site.put(f"{path}.cert", certificate)
            site.put(f"rekor.sigstore.dev/api/v1/log/entries/{uuid}", json.dumps(entry))
            index[f"sha256:{hashlib.sha256(content).hexdigest()}"] = [uuid]
    # serve.py answers searches from it.
    site.put("rekor.sigstore.dev/index.json", json.dumps(index, indent=1))


class Gpg:
    """A signing key of the test's own."""

    def __init__(self, name, *options, expire="never"):
        self.home = tempfile.TemporaryDirectory()
        self.gpg("--passphrase", "", *options, "--quick-gen-key", name, "ed25519", "sign", expire)

    def gpg(self, *arguments, stdin=None):
        command = ["gpg", "--homedir", self.home.name, "--batch", "--quiet", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(command, input=stdin, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def public(self):
        return self.gpg("--armor", "--export")

    def clearsign(self, text, *options):
        return self.gpg(*options, "--clearsign", stdin=text.encode())

    def detach(self, content, *options):
        return self.gpg(*options, "--detach-sign", stdin=content)

    def close(self):
        subprocess.run(["gpgconf", "--homedir", self.home.name, "--kill", "all"], check=False)
        self.home.cleanup()


SSM = "s3.us-east-1.amazonaws.com/amazon-ssm-us-east-1"


def ssm_agent(site, programs, versions, key):
    """The agent of AWS Systems Manager, and what else its key has signed: an older release, and another package."""
    new, old = versions["ssm"], "3.2.1.0"
    unit = "[Service]\nExecStart=/usr/bin/amazon-ssm-agent\n[Install]\nWantedBy=multi-user.target\n"
    for arch in ARCHES:
        def signed(version, name="amazon-ssm-agent", place=None):
            files = {"usr/bin/amazon-ssm-agent": programs[arch].standin("amazon-ssm-agent", version),
                     "etc/init/amazon-ssm-agent.conf": b"# stand-in\n", "etc/amazon/ssm/seelog.xml.template": b"<seelog/>\n",
                     "etc/amazon/ssm/amazon-ssm-agent.json.template": b"{}\n", "lib/systemd/system/amazon-ssm-agent.service": unit.encode()}
            content = package(name, f"{version}-1", arch, files, SSM_SCRIPTS, ["usr/bin/amazon-ssm-agent"], "libc6", SSM_CONFFILES)
            path = f"{SSM}/{place or version}/debian_{arch}/amazon-ssm-agent.deb"
            site.put(path, content)
            site.put(f"{path}.sig", key.detach(content))
        signed(new)
        signed(old)
        signed(new, "other", "other")
    site.put(f"{SSM}/latest/VERSION", f"{new}\n")


def release_text(codename, indexes, date):
    lines = "".join(f" {hashlib.sha256(content).hexdigest()} {len(content)} {path}\n" for path, content in indexes.items())
    return (f"Origin: . {codename}\nLabel: . {codename}\nSuite: {codename}\nCodename: {codename}\n"
            f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S', time.gmtime(date))} UTC\nArchitectures: amd64 arm64\n"
            f"Components: main\nDescription: Test\nSHA256:\n{lines}")


def fluentbit(site, programs, versions, key, now):
    """The apt repository; returns the index of trixie, for attacks on it."""
    kept = {}
    for codename in SYSTEMS:
        base = f"packages.fluentbit.io/debian/{codename}"
        indexes = {}
        for arch in ARCHES:
            stanzas = []
            # The index of the real archive has every version.
            for version in ("1.9.9", versions["fluent-bit"]):
                content = deb(programs[arch].standin("fluent-bit", version), version, arch)
                path = f"pool/main/f/fluent-bit/fluent-bit_{version}_{arch}.deb"
                site.put(f"{base}/{path}", content)
                stanzas.append(f"Package: fluent-bit\nVersion: {version}\nArchitecture: {arch}\nFilename: {path}\n"
                               f"Size: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n")
            packages = "\n".join(stanzas).encode()
            indexes[f"main/binary-{arch}/Packages"] = packages
            indexes[f"main/binary-{arch}/Packages.gz"] = gzip.compress(packages, mtime=0)
        for path, content in indexes.items():
            site.put(f"{base}/dists/{codename}/{path}", content)
        site.put(f"{base}/dists/{codename}/InRelease", key.clearsign(release_text(codename, indexes, now)))
        kept[codename] = indexes
    return kept["trixie"]


def pause(site, programs, versions):
    base = "registry.k8s.io/v2/pause"
    blobs, manifests = {}, []

    def blob(content):
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        blobs[digest] = content
        return {"digest": digest, "size": len(content)}

    for arch in ARCHES:
        plain = gzip.decompress(layer := tar_gz({"pause": programs[arch].standin("pause", versions["pause"])}))
        config = {"architecture": arch, "os": "linux", "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
                  "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]}}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **blob(json.dumps(config).encode())},
                    "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **blob(layer)}]}
        content = json.dumps(manifest).encode()
        entry = {"mediaType": manifest["mediaType"], **blob(content), "platform": {"os": "linux", "architecture": arch}}
        site.put(f"{base}/manifests/{entry['digest']}", content)
        manifests.append(entry)
    index = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}).encode()
    site.put(f"{base}/manifests/{versions['pause']}", index)
    site.put(f"{base}/manifests/sha256:{hashlib.sha256(index).hexdigest()}", index)
    for digest, content in blobs.items():
        site.put(f"{base}/blobs/{digest}", content)
    site.put("auth.registry.k8s.io/token", json.dumps({"token": "test-token"}))


def disk(arch, codename, version, path):
    """A small disk image with what `os.boot` is read from: GPT, an ext4 root, a GRUB menu, a kernel, an initrd."""
    guid = {"amd64": "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "arm64": "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"}[arch]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        (root / "boot/grub").mkdir(parents=True)
        (root / "boot/vmlinuz-test").write_text(f"kernel {codename} {version} {arch}\n")
        (root / "boot/initrd.img-test").write_text(f"initrd {codename} {version} {arch}\n")
        (root / "boot/grub/grub.cfg").write_text(
            "menuentry 'Debian' {\n\tlinux /boot/vmlinuz-test root=PARTUUID=x ro console=ttyS0\n\tinitrd /boot/initrd.img-test\n}\n")
        raw = f"{folder}/disk.raw"
        environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        def run(*command):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        run("truncate", "-s", "32M", raw)
        run("sgdisk", "-n", "1:2048:0", "-t", f"1:{guid}", raw)
        run("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-E", "offset=1048576", "-d", root, raw, "28M")
        run("qemu-img", "convert", "-O", "qcow2", raw, path)


def cloud(site, versions):
    version = versions["image"]
    for codename, system in SYSTEMS.items():
        base = f"cloud.debian.org/images/cloud/{codename}"
        images = {}
        for arch in ARCHES:
            name = f"{system}-genericcloud-{arch}"
            labels = {"cloud.debian.org/version": version}
            site.put(f"{base}/latest/{name}.json",
                     json.dumps({"kind": "List", "items": [{"kind": "Build", "metadata": {"labels": labels}}]}))
            path = site.root / f"{base}/{version}/{name}-{version}.qcow2"
            path.parent.mkdir(parents=True, exist_ok=True)
            disk(arch, codename, version, path)
            images[path.name] = path.read_bytes()
        site.put(f"{base}/{version}/SHA512SUMS", sums(images, "sha512"))


def attacks(folder, programs, versions, pki, key, indexes, now):
    """Files that an attacker would serve; each is served in place of a good one by a test."""
    def put(name, content):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    text = release_text("trixie", indexes, now)
    put("InRelease.unsigned", text)
    put("InRelease.older", key.clearsign(release_text("trixie", indexes, now - 86400)))
    stranger = Gpg("Stranger <stranger@example.org>")
    put("InRelease.unknown-key", stranger.clearsign(text))
    stranger.close()
    # A key that was valid when it signed and has expired since.
    expired = Gpg("Expired <expired@example.org>", "--faked-system-time", f"{now - 864000}!", expire="5d")
    put("InRelease.expired-key", expired.clearsign(text, "--faked-system-time", f"{now - 800000}!"))
    put("expired-key.asc", expired.public())
    expired.close()

    version = versions["containerd"]
    archives = {f"containerd-{version}-linux-{arch}.tar.gz" for arch in ARCHES}
    base = folder.parent / f"site/github.com/containerd/containerd/releases/download/v{version}"
    subjects = {name: hashlib.sha256((base / name).read_bytes()).hexdigest() for name in archives}
    identity = CONTAINERD.format(version)
    put("containerd.other-identity", json.dumps(pki.attest(subjects, identity.replace("release.yml", "ci.yml"), GITHUB, now)))
    put("containerd.other-issuer", json.dumps(pki.attest(subjects, identity, "https://issuer.example.org", now)))
    put("containerd.other-root", json.dumps(Pki(now, "another authority").attest(subjects, identity, GITHUB, now)))
    def kubelet(name="kubelet", version=versions["kubernetes"], arch="amd64"):
        return release(programs[arch].standin(name, version), name, version, arch)

    for name, content, signer in (
            ("other-identity", kubelet(), ("attacker@example.org", KUBERNETES[1])),
            ("other-issuer", kubelet(), (KUBERNETES[0], "https://issuer.example.org")),
            # Signed like every release: the signature does not say what it is of.
            ("older", kubelet(version="1.33.0"), KUBERNETES),
            ("other-program", kubelet(name="kube-proxy"), KUBERNETES),
            ("other-machine", kubelet(arch="arm64"), KUBERNETES)):
        signature, certificate, uuid, entry = pki.sign_blob(content, *signer, now)
        put(f"kubelet.{name}", content)
        put(f"kubelet.{name}.sha256", hashlib.sha256(content).hexdigest())
        put(f"kubelet.{name}.sig", signature)
        put(f"kubelet.{name}.cert", certificate)
        put(f"kubelet.{name}.index", json.dumps([uuid]))
        (folder.parent / f"site/rekor.sigstore.dev/api/v1/log/entries/{uuid}").write_text(json.dumps(entry))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/vmbake/upstream")
    arguments = parser.parse_args()
    now = int(time.time()) - 3600
    site, trust = Site(arguments.out / "site"), arguments.out / "trust"
    shutil.rmtree(site.root, ignore_errors=True)
    trust.mkdir(parents=True, exist_ok=True)
    programs = {arch: Programs(arguments.cache, arch) for arch in ARCHES}
    pki, key = Pki(now), Gpg("Test <test@example.org>")
    github(site, programs, VERSIONS, pki, now)
    kubernetes(site, programs, VERSIONS, pki, now)
    indexes = fluentbit(site, programs, VERSIONS, key, now)
    pause(site, programs, VERSIONS)
    agent = Gpg("Agent <agent@example.org>")
    ssm_agent(site, programs, VERSIONS, agent)
    cloud(site, VERSIONS)
    (trust / "sigstore-root.json").write_text(json.dumps(pki.trusted_root(), indent=1))
    (trust / "fluentbit.asc").write_bytes(key.public())
    (trust / "amazon-ssm-agent.asc").write_bytes(agent.public())
    agent.close()
    shutil.copy(ROOT / "trust/debian-archive.asc", trust)
    folder = arguments.out / "attacks"
    folder.mkdir(exist_ok=True)
    attacks(folder, programs, VERSIONS, pki, key, indexes, now)
    key.close()


if __name__ == "__main__":
    main()
