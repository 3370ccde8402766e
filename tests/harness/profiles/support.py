"""Supported combinations of provider, version of Kubernetes and architecture of an import: each is tested, and the program's table must not claim more."""

import base64
import json
import re

import yaml

from harness.paths import ROOT
from harness.profiles.lab import DEPLOYMENT, PROFILE
from harness.report import case

TABLE = ROOT / "src/profile/src/import/support.json"
SYSTEM, ARCHES = "debian-13", ("amd64", "arm64")
KUBELETS = {"1.33": "1.33.5", "1.34": "1.34.2", "1.35": "1.35.0", "1.36": "1.36.0"}
# Settings of machines, as far as a layer asks for them.
VALUES = {"BOOTSTRAP_KUBECONFIG": base64.b64encode(b"kind: Config\n").decode(), "KUBERNETES_CA": base64.b64encode(b"no certificate\n").decode(),
          "CLUSTER_DNS": "10.96.0.10", "INITIAL_TAINTS": "a=b:NoSchedule", "INSTANCE_ID": "worker-one", "CLOUD_CONFIG": base64.b64encode(b"[Global]\n").decode()}
# Packages that machines of a provider need.
PACKAGES = {"kubevirt": {"qemu-guest-agent"}, "nutanix": {"open-iscsi"}, "vsphere": {"open-vm-tools"}}


def providers():
    return [provider["name"] for provider in yaml.safe_load(PROFILE.read_text())["spec"]["supportedCloudProviders"]]


def deployment(lab, provider, kubelet):
    """A deployment of machines at a provider."""
    text = DEPLOYMENT.read_text().replace("cloudProvider: aws", f"cloudProvider: {provider}").replace("kubelet: 1.34.2", f"kubelet: {kubelet}")
    path = lab.folder / f"{provider}-{kubelet}.yaml"
    path.write_text(text)
    return path


def tried(lab, provider, minor):
    """The architectures for which it works, and why not for others."""
    out, kubelet = lab.folder / "support", KUBELETS[minor]
    status, kind, said = lab.imports(out, "--no-pin", deployment=deployment(lab, provider, kubelet))
    if status:
        return set(), said
    kind = kind.strip()
    status, checked, said = lab.run("layer", "check", out / f"layers/{kind}", out / f"layers/{kind}-profile", "--layers", out / "layers")
    if status or checked + said:
        return set(), checked + said
    layer = json.loads((out / f"layers/{kind}-profile/layer.json").read_text())
    missing = PACKAGES.get(provider, set()) - set(layer["packages"])
    if missing:
        return set(), f"without {missing}"
    variables = layer["first_boot"]["variables"]
    wanted = [word for name in variables for word in ("--set", f"{name}={VALUES[name]}")]
    status, text, said = lab.run("user-data", "render", "--kind", kind, "--layers", out / "layers", *wanted)
    if status or not all(f"{name}='{VALUES[name]}'" in text for name in variables):
        return set(), text + said
    return {arch for arch in ARCHES if is_for(layer["downloads"], arch, kubelet)}, layer["downloads"]


def is_for(downloads, arch, kubelet):
    """Whether every download has an address of this architecture, and the kubelet is the right one."""
    urls = {name: download["url"].get(arch, "") for name, download in downloads.items()}
    others = [other for other in ARCHES if other != arch]
    named = all(re.search(rf"\b{arch}\b", url) and not any(re.search(rf"\b{other}\b", url) for other in others) for url in urls.values())
    return named and {"kubelet", "cni-plugins", "crictl"} <= set(urls) and f"/v{kubelet}/" in urls["kubelet"]


def judged(lab, is_written):
    """Tries everything, and compares with the table or writes it."""
    found = {}
    for provider in providers():
        for minor in KUBELETS:
            arches, why = tried(lab, provider, minor)
            case(f"an import for {provider} with Kubernetes {minor}: {', '.join(sorted(arches))}", arches == set(ARCHES), why)
            if arches == set(ARCHES):
                found.setdefault(provider, []).append(minor)
    table = {"tested": [{"os": SYSTEM, "provider": provider, "arches": list(ARCHES), "kubernetes": sorted(found[provider])} for provider in sorted(found)]}
    if is_written:
        rows = ",\n".join(f"  {json.dumps(row)}" for row in table["tested"])
        TABLE.write_text(f'{{"tested": [\n{rows}\n]}}\n')
    committed = json.loads(TABLE.read_text())
    said = {(row["os"], row["provider"], arch, minor) for row in committed["tested"] for arch in row["arches"] for minor in row["kubernetes"]}
    true = {(SYSTEM, provider, arch, minor) for provider, minors in found.items() for minor in minors for arch in ARCHES}
    case("the table of the program says nothing that was not tried", said <= true, sorted(said - true))
    case("and all that was", true <= said, f"`WRITE_SUPPORT=1 pytest -k profiles_support` writes {sorted(true - said)}")
