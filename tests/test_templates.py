"""Templates rendered by `vmbake profile render` and by Go's text/template with sprig: every byte must be the same, of a list, of some thousand made by chance, and
of constraints of versions. cloud-init validates the user data, and PyYAML checks that it equals the configuration; the same for user data that Nstance renders
(fleet.py). GOPATH names other sources than Debian's, to compare with another release of Masterminds/semver."""

import base64
import itertools
import json
import pathlib
import random
import subprocess

import pytest
import yaml

from harness.fleet import SOURCES, build, judge_fleet
from harness.paths import ROOT
from harness.report import case
from harness.run import must

pytestmark = pytest.mark.needs("cloud-init")

EXAMPLES = ROOT / "examples/profiles"

VALUES = {
    "KubeVersion": "v1.34.2", "CloudProviderName": "hetzner", "ContainerRuntime": "containerd", "NetworkIPFamily": "IPv6",
    "ClusterDNSIPs": ["10.0.0.10", "fd00::a"], "KubeletFeatureGates": {"B": False, "A": True, "RotateKubeletServerCertificate": True},
    "InitialTaints": "", "HTTPProxy": "http://proxy:3128", "NoProxy": "", "ExternalCloudProvider": True, "InTreeCCMAvailable": False,
    "MaxPods": "110", "KubeReserved": {"cpu": "200m", "memory": "1Gi"}, "SystemReserved": "", "PauseImage": "pause:3.10",
    "UbuntuConfig": {"DistUpgradeOnBoot": False},
}
SET = ["cluster-dns=10.0.0.10,fd00::a", "node-kubelet-feature-gates=B=false,A=true", "node-http-proxy=http://proxy:3128", "node-no-proxy=",
       "external-cloud-provider=true", "pause-image=pause:3.10"]
KUBELET = "v1.kubelet-config.machine-controller.kubermatic.io/"
DEPLOYMENT = {
    "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineDeployment",
    "metadata": {"name": "m", "namespace": "n", "annotations": {
        "k8c.io/operating-system-profile": "p", KUBELET + "MaxPods": "110", KUBELET + "KubeReserved": "memory=1Gi,cpu=200m"}},
    "spec": {"template": {"spec": {"versions": {"kubelet": "1.34.2"}, "providerSpec": {"value": {
        "operatingSystem": "debian", "cloudProvider": "hetzner", "network": {"ipFamily": "IPv6"}}}}}},
}
TEMPLATES = {
    "proxy": "{{- if .HTTPProxy }}\nproxy {{ .HTTPProxy }}\n{{- end }}\n{{- /* one */}}\n{{- /* two */}}\nend\n\n",
    "empty": "{{- /* nothing\n but lines */ -}}\n",
    "plain": "  a\n  b",
}
FILES = [
    "", "plain\n", "{{ .KubeVersion }}", "a {{- .KubeVersion -}} b", "a  {{-  .KubeVersion  -}}  b", "\n{{- \"\" }}\n", "{{/* a */}}b", "a\n{{- /* a */ -}}\nb",
    "x\n{{- /* a */}}\n{{- /* b */}}\ny", "x\n{{- /* a */}}\n{{ if .NoProxy }}\nn\n{{ end }}\n{{- /* }} */}}y", "{{ \"}}\" }}{{ `}}` }}",
    "{{ if .HTTPProxy }}a{{ else }}b{{ end }}", "{{ if .NoProxy }}a{{ else if .HTTPProxy }}b{{ else }}c{{ end }}", "{{ with .HTTPProxy }}<{{ . }}>{{ else }}none{{ end }}",
    "{{ with .InitialTaints }}{{ . }}{{ else }}none{{ end }}", "{{ range .ClusterDNSIPs }}\n- \"{{ . }}\"\n{{- end }}\n", "{{ range $at, $ip := .ClusterDNSIPs }}{{ $at }}={{ $ip }} {{ end }}",
    "{{ range $name, $on := .KubeletFeatureGates }}\n  {{ $name }}: {{ $on }}\n{{- end -}}\n z", "{{ range .KubeReserved }}{{ . }} {{ end }}",
    "{{ range .ClusterDNSIPs }}{{ range $.KubeReserved }}{{ . }}{{ end }}{{ $.KubeVersion }}{{ end }}", "{{ $x := .KubeVersion }}{{ $x }}", "{{ $x := 1 }}{{ if .HTTPProxy }}{{ $x = 2 }}{{ end }}{{ $x }}",
    "{{ .MaxPods }}{{ with .MaxPods }} {{ . }}{{ end }}", "{{ .ClusterDNSIPs }}", "{{ .ExternalCloudProvider }}", "{{ .UbuntuConfig.DistUpgradeOnBoot }}", "{{ len .ClusterDNSIPs }}{{ len .KubeVersion }}",
    "{{ eq .CloudProviderName \"aws\" \"hetzner\" }}{{ ne .NetworkIPFamily \"IPv4\" }}", "{{ if and (ne .CloudProviderName \"aws\") (not .InTreeCCMAvailable) }}x{{ end }}",
    "{{ and .HTTPProxy .NoProxy }}|{{ or .NoProxy .HTTPProxy }}|{{ or .NoProxy 0 false }}|{{ and 1 \"\" 2 }}", "{{ not .NoProxy }}", "{{ .KubeVersion | eq \"v1.34.2\" }}", "{{ semverCompare \"<1.29\" .KubeVersion }}",
    "{{ .KubeVersion | semverCompare \"~1.34.0\" }}", "a\n{{- template \"proxy\" }}\nb", "{{ template \"empty\" }}|{{- template \"plain\" . }}", "{{ 'a' }}{{ 0x10 }}{{ 1.5 }}{{ true }}", "{{ \"\\t\\\"\\u00e9\" }}é{{ `\\n` }}",
    "{{ if eq .CloudProviderName \"hetzner\" -}}\n x \n{{- end }}", "{ { }} {{ \"{\" }}", "{{ .KubeVersion\n}}", "{{if .NoProxy}}{{else}}{{end}}.", "{{ if (eq (len .ClusterDNSIPs) 2) }}two{{ end }}",
]
ERRORS = ["{{ range .SystemReserved }}x{{ end }}", "{{ .NoSuch }}", "{{ nosuch }}", "{{ .KubeVersion.X }}", "{{ eq .KubeVersion 1 }}", "{{ if }}", "{{ end }}", "{{ .KubeVersion", "{{ template \"none\" }}",
          "{{ $x }}", "{{ len 3 }}", "{{ not }}", "{{ with .HTTPProxy }}{{ .X }}{{ end }}", "{{ else }}", "{{ \"a }}", "{{/* a }}", "{{ .KubeVersion) }}"]
CONSTRAINTS = [
    operator + version
    for operator in ["", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", ">= "]
    for version in ["1.2.3", "v1.2.3", "1.2", "1", "0.2.3", "0.0.3", "0.2", "0.0", "0", "1.x", "1.2.x", "1.X.3", "*", "x", "1.2.3-beta.2", "1.2.0-0", "1.2.3+b", "0.0.0", "01.2"]
] + ["1.2 - 1.4.5", "1.2 - 1.4, !=1.3.0", ">=1.2, <2", ">=1.2 <2", ">1.0,<1.1||>=2", "~1.2 || ^2", "1.2.3 || 1.2.4 || 0.x", ">=1.2.3-alpha <1.2.3", "1 - 2 || 3 - 4", ">= 1.29", "<1.29", " ~1.2.0 ", ">=0", "1.2.3-1 - 1.2.3-9",
     "1.2.3-alpha.beta || 9"]
INVALID = ["", "1.2.3.4", ">>1", "1..2", "a", "1.2 -1.3", "> 1 - 2", "1 ||", "|| 1", "1,", "1.2.3-", "1.2.3-01", "~ ~1", "3 1 - 2", "18446744073709551616"]
VERSIONS = ["1.2.3", "v1.2.4", "1.2.0", "1.3.0", "1.0.0", "2.0.0", "0.2.3", "0.2.9", "0.0.3", "0.0.0", "0.3.0", "1.2", "1", "1.2.3-beta.2", "1.2.3-beta.10",
            "1.2.3-alpha.beta", "1.2.3-rc", "1.2.3-4", "1.4.5", "1.4.9", "3.1.4", "1.29.0", "1.29.0-alpha.1", "1.2.3+build", "9.9.9"]


def make(chance, depth=0):
    """A template that is valid, by chance."""
    def trim():
        return (chance.choice(["{{ ", "{{- "]), chance.choice([" }}", " -}}"]))
    def field():
        return chance.choice(["$.KubeVersion", "$.NoProxy", "$.HTTPProxy", "$.MaxPods", "$.ExternalCloudProvider", "$.InTreeCCMAvailable", '"x"', '""', "0", "7"])
    kind = chance.randrange(10 if depth < 4 else 4)
    def inner():
        return "".join(make(chance, depth + 1) for _ in range(chance.randrange(3)))
    def act(text):
        return text.join(trim())
    if kind < 2:
        return chance.choice(["a", " ", "\n", "  b\n", "{", "}", "}}", "\t", "é", "'\""])
    if kind == 2:
        return act(field())
    if kind == 3:
        return chance.choice(["{{/* c */}}", "{{- /* c\n */}}", "{{/* } */ -}}", "{{- /* \" */ -}}"])
    if kind == 4:
        return act(f"if {field()}") + inner() + act("end")
    if kind == 5:
        return act(f"if {chance.choice(['and', 'or'])} {field()} (not {field()})") + inner() + act(f"else if {field()}") + inner() + act("else") + inner() + act("end")
    if kind == 6:
        return act(f"with {field()}") + inner() + act(".") + act("else") + inner() + act("end")
    if kind == 7 and depth < 2:
        return act(f"range {chance.choice(['$.ClusterDNSIPs', '$.KubeReserved', '$.SystemReserved'])}") + inner() + act("end")
    if kind == 8:
        return act(f"template \"{chance.choice(list(TEMPLATES))}\"")
    return act(f"{chance.choice(['eq', 'ne'])} $.KubeVersion {chance.choice(['$.NoProxy', chr(34) + 'v1.34.2' + chr(34)])}")


def profile(files, templates):
    contents = [{"path": f"/f{at}", "content": {"inline": {"data": text}}} for at, text in enumerate(files)]
    return {"apiVersion": "operatingsystemmanager.k8c.io/v1alpha1", "kind": "OperatingSystemProfile", "metadata": {"name": "p"}, "spec": {
        "osName": "debian", "osVersion": "13", "version": "v1.0.0", "supportedCloudProviders": [{"name": "hetzner"}],
        "bootstrapConfig": {}, "provisioningConfig": {"templates": templates, "files": contents}}}


def ours(vmbake, folder, files, templates=TEMPLATES):
    """vmbake's rendering of files; None if it refuses them."""
    for name, document in ("p.yaml", profile(files, templates)), ("m.yaml", DEPLOYMENT):
        # JSON is YAML, and no dumper has a say in what a text is.
        (folder / name).write_text(json.dumps(document, ensure_ascii=False))
    sets = itertools.chain.from_iterable(("--set", value) for value in SET)
    run = subprocess.run([vmbake, "profile", "render", folder / "p.yaml", "--machine-deployment", folder / "m.yaml", *sets], capture_output=True,
                         text=True)
    if run.returncode:
        return None, run.stderr
    rendered = yaml.safe_load(run.stdout)["spec"]["provisioningConfig"]["files"]
    return [file["content"]["inline"]["data"] for file in rendered if file["path"].startswith("/f")], run.stderr


def theirs(judge, files, templates=TEMPLATES):
    task = {"Values": VALUES, "Templates": templates, "Files": files}
    return json.loads(subprocess.run([judge], input=json.dumps(task), stdout=subprocess.PIPE, text=True, check=True).stdout)


def compare(name, vmbake, folder, judge, files, templates=TEMPLATES):
    found, said = ours(vmbake, folder, files, templates)
    expected = theirs(judge, files, templates)
    differ = [(text, want, got) for text, want, got in zip(files, expected, found or itertools.repeat(None)) if want != got]
    case(f"{name}: {len(files)} templates", found is not None and not differ, f"{said}\n{differ[:5]}")


def judge_constraints(vmbake, folder, judge):
    def question(pair):
        return f"{{{{ semverCompare {json.dumps(pair[0])} {json.dumps(pair[1])} }}}}"
    pairs = list(itertools.product(CONSTRAINTS, VERSIONS))
    # Before 3.3 Masterminds/semver looked at each comparator alone, and `!=` took any prerelease. OSM has 3.4.
    if theirs(judge, [question(("!=1.2.3", "1.2.3-beta.2"))], {}) == ["true"]:
        def is_other(constraint, version):
            return "-" in version and ("!=" in constraint or any(sign in constraint.strip() for sign in ", <|"))
        kept = [pair for pair in pairs if not is_other(*pair)]
        print(f"left out: {len(pairs) - len(kept)} constraints that Masterminds/semver reads in another way since 3.3", flush=True)
        pairs = kept
    text = "\n".join(map(question, pairs))
    found, said = ours(vmbake, folder, [text], {})
    expected = theirs(judge, [text], {})
    answers = zip(pairs, expected[0].split("\n"), found[0].split("\n") if found else itertools.repeat(None))
    differ = [(pair, want, got) for pair, want, got in answers if want != got]
    case(f"{len(pairs)} constraints", found is not None and expected[0] != "error" and not differ, f"{said}\n{differ[:20]}")
    for constraint in INVALID:
        text = question((constraint, "1.2.3"))
        case(f"refused: {constraint!r}", ours(vmbake, folder, [text], {})[0] is None and theirs(judge, [text], {}) == ["error"])
    for text in ERRORS:
        case(f"refused: {text}", ours(vmbake, folder, [text], {})[0] is None and theirs(judge, [text], {}) == ["error"])


def judge_user_data(vmbake, folder):
    (folder / "token").write_text("token\n")
    command = [vmbake, "profile", "render", EXAMPLES / "debian.yaml", "--machine-deployment", EXAMPLES / "deployment.yaml", "--set", f"kubernetes-ca-bundle={folder / 'ca'}",
               "--set", "server-url=https://api.example.org:6443", "--set", f"api-server-token={folder / 'token'}"]
    config = yaml.safe_load(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["spec"]
    for phase in "bootstrap", "provisioning":
        text = subprocess.run([*command, "--user-data", phase], stdout=subprocess.PIPE, check=True).stdout
        (folder / "user-data").write_bytes(text)
        valid = subprocess.run(["cloud-init", "schema", "--config-file", folder / "user-data"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        case(f"{phase}: cloud-init finds it valid", valid.returncode == 0 and "Valid" in valid.stdout, valid.stdout)
        (folder / "user-data").write_bytes(text + b"no_such_module: 1\nwrite_files: 7\n")
        invalid = subprocess.run(["cloud-init", "schema", "--config-file", folder / "user-data"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        case(f"{phase}: cloud-init notices a fault", invalid.returncode != 0, invalid.stdout)
        sent = {file["path"]: file for file in yaml.safe_load(text)["write_files"]}
        for file in config[f"{phase}Config"]["files"]:
            inline, got = file["content"]["inline"], sent[file["path"]]
            data = base64.b64decode(got["content"]).decode() if got.get("encoding") == "b64" else got["content"] + "\n"
            case(f"{phase}: {file['path']}", data == inline["data"] and int(got["permissions"], 8) == int(str(file["permissions"]), 8), got)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """The program in Go."""
    if not pathlib.Path(SOURCES, "src/github.com/Masterminds/sprig").exists():
        pytest.skip("needs golang-github-masterminds-sprig-dev")
    return build(tmp_path_factory.mktemp("judge"))


@pytest.fixture
def folder(tmp_path):
    """With the certificate of an authority, as `ca`."""
    must("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=test", "-keyout", tmp_path / "key", "-out", tmp_path / "ca")
    return tmp_path


def test_templates(vmbake, tmp_path, judge):
    compare("the list", vmbake, tmp_path, judge, FILES)
    chance = random.Random(13)
    for part in range(10):
        made = ["".join(make(chance) for _ in range(6)) for _ in range(400)]
        # Both refuse some of them; what one template becomes must not depend on that.
        compare(f"by chance, {part}", vmbake, tmp_path, judge, [text for text, out in zip(made, theirs(judge, made)) if out != "error"])


def test_templates_of_versions(vmbake, tmp_path, judge):
    judge_constraints(vmbake, tmp_path, judge)


def test_templates_as_user_data(vmbake, folder):
    judge_user_data(vmbake, folder)


def test_templates_of_a_fleet(vmbake, folder, judge):
    judge_fleet(vmbake, folder, judge)
