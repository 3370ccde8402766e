"""User data of `vmbake user-data render --template nstance`, executed by Go's text/template as Nstance does, and read by cloud-init, PyYAML and bash."""

import json
import os
import random
import shutil
import string
import subprocess

import yaml

from harness.paths import HARNESS
from harness.report import case

SOURCES = "/usr/share/gocode"
ARGUMENTS = ["user-data", "render", "--kind", "knc", "--set", "PROVIDER_KIND=aws", "--set", "AWS_ACCOUNT_ID=123456789012"]
# A setting made of several parts, one that an administrator sets, and keys whose text looks like a placeholder.
COMPOSED = ["--set", "REGISTRY_HOSTNAME=registry.{{ .Cluster.ID }}.example", "--set", "KUBE_LOG_LEVEL={{ .Vars.LOG_LEVEL }}"]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0e it's {{ .Nonce }} \"mine\""
HOSTILE = ["'", '"', "\\", "\n", "$(id)", "`id`", "{{ .Nonce }}", "# ", ": ", "---\n", "\\u0027", "\\n", "~", "%", " ", "a", "''", "\n\n", "|", "!!str"]


def build(folder):
    """The Go program. Debian has Go libraries as sources below a GOPATH, without modules."""
    source = folder / "go/src/judge"
    source.mkdir(parents=True)
    shutil.copy(HARNESS / "templates/main.go", source)
    path = f"{folder / 'go'}:{os.environ.get('GOPATH', SOURCES)}"
    own = os.environ | {"GO111MODULE": "off", "GOFLAGS": "", "GOPATH": path, "GOCACHE": str(folder / "cache")}
    subprocess.run(["go", "build", "-o", folder / "judge", "judge"], env=own, cwd=source, check=True)
    return folder / "judge"


def values(value):
    """The data of the template; `value` gives each field's by name and longest length."""
    return {
        "Cluster": {"ID": value("ID", 32), "CACert": value("CACert", 4096)},
        "Server": {"Shard": "us-west-2a", "RegistrationAddr": value("RegistrationAddr", 259), "AgentAddr": value("AgentAddr", 259), "OperatorAddr": "10.0.0.1:8993"},
        "Provider": {"Kind": "aws", "Region": value("Region", 64), "Zone": value("Zone", 64)},
        "Instance": {"ID": value("InstanceID", 64), "Kind": "knc", "Arch": "arm64", "Type": value("Type", 64)},
        "Vars": {"LOG_LEVEL": value("LOG_LEVEL", 4096)},
        "Image": {},
        "Nonce": value("Nonce", 1024),
    }


def settings(data):
    """Expected result on the machine."""
    return {
        "AWS_ACCOUNT_ID": "123456789012", "CLUSTER_ID": data["Cluster"]["ID"], "IMMUTABLE_SSH_AUTHORIZED_KEYS": KEY, "INSTANCE_ID": data["Instance"]["ID"],
        "KUBE_LOG_LEVEL": data["Vars"]["LOG_LEVEL"], "NSTANCE_CA_CERT": data["Cluster"]["CACert"], "NSTANCE_SERVER_AGENT_ADDR": data["Server"]["AgentAddr"],
        "NSTANCE_SERVER_REGISTRATION_ADDR": data["Server"]["RegistrationAddr"], "PROVIDER_INSTANCE_TYPE": data["Instance"]["Type"], "PROVIDER_KIND": "aws",
        "PROVIDER_REGION": data["Provider"]["Region"], "PROVIDER_ZONE": data["Provider"]["Zone"],
        "REGISTRY_HOSTNAME": f"registry.{data['Cluster']['ID']}.example",
    }


def execute(judge, template, data):
    """The server's rendering; "error" if it refuses."""
    task = {"Values": data, "Templates": {}, "Files": [template], "Nstance": True}
    return json.loads(subprocess.run([judge], input=json.dumps(task), stdout=subprocess.PIPE, text=True, check=True).stdout)[0]


def sourced(folder, content):
    """Variables of a file as read by bash."""
    path = folder / "user-data.env"
    path.write_text(content)
    names = [name for name in settings(values(lambda *_: ""))]
    script = "set -eu; . \"$1\"; shift; for name; do printf '%s\\0' \"${!name}\"; done"
    run = subprocess.run(["env", "-i", "bash", "-c", script, "bash", path, *names], stdout=subprocess.PIPE, check=True)
    return dict(zip(names, run.stdout.decode().split("\0")))


def wrong(folder, document, data):
    """Errors in rendered user data."""
    try:
        read = yaml.safe_load(document)
    except yaml.YAMLError as error:
        return f"{error}\n{document}"
    files = {file["path"]: file["content"] for file in read["write_files"]}
    got = [read["hostname"], files.get("/opt/nstance-agent/identity/nonce.jwt"), sourced(folder, files["/opt/podplane/etc/user-data.env"])]
    expected = [data["Instance"]["ID"], data["Nonce"], settings(data)]
    return None if got == expected else f"{got}\n{expected}\n{document}"


def valid(folder, document):
    (folder / "user-data").write_text(document)
    run = subprocess.run(["cloud-init", "schema", "--config-file", folder / "user-data"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode == 0 and "Valid" in run.stdout, run.stdout


def first_boot(vmbake, folder, document):
    """Whether the first-boot program accepts the settings, and writes them unchanged."""
    content = {file["path"]: file["content"] for file in yaml.safe_load(document)["write_files"]}
    (folder / "env").write_text(content["/opt/podplane/etc/user-data.env"])
    (folder / "nonce").write_text(content["/opt/nstance-agent/identity/nonce.jwt"])
    run = subprocess.run([vmbake, "user-data", "render", "--kind", "knc", "--env", folder / "env", "--nonce", folder / "nonce"], capture_output=True,
                         text=True)
    good = run.returncode == 0 and "warning" not in run.stderr and yaml.safe_load(run.stdout) == yaml.safe_load(document)
    return good, f"{run.stderr}\n{run.stdout}"


def judge_fleet(vmbake, folder, judge):
    (folder / "keys").write_text(KEY + "\n")
    command = [vmbake, *ARGUMENTS, *COMPOSED, "--template", "nstance", "--ssh-key", folder / "keys"]
    rendered = json.loads(subprocess.run([*command, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    template, sizes = rendered["user_data"], rendered["parts"]
    pem = (folder / "ca").read_text()
    real = {"ID": "demo", "CACert": pem, "InstanceID": "knc0000000001r010000000000000", "Type": "t4g.medium", "Region": "us-west-2", "Zone": "us-west-2a",
            "RegistrationAddr": "10.0.0.1:8992", "AgentAddr": "[fd00::1]:8994", "Nonce": "eyJhbGciOiJFZERTQSJ9.e30.c2ln", "LOG_LEVEL": "2"}
    for name, own in ("a certificate", {}), ("a certificate in base64", {"CACert": "eA=="}), ("no variable", {"LOG_LEVEL": ""}):
        data = values(lambda field, _, own=own: (real | own)[field])
        document = execute(judge, template, data)
        case(f"nstance, {name}: every value arrives", wrong(folder, document, data) is None, wrong(folder, document, data))
        case(f"nstance, {name}: cloud-init finds it valid", *valid(folder, document))
        case(f"nstance, {name}: the first boot takes it", *first_boot(vmbake, folder, document))
    data = values(lambda field, longest: (("x" * 64 + "\n") * 64)[:longest] if field == "CACert" else "x" * longest)
    document = execute(judge, template, data)
    case("nstance: the longest values make the stated size", len(document) == sizes["total"] and sizes["longest"], (len(document), sizes))
    chance = random.Random(39)
    failed = []
    for number in range(100):
        parts = HOSTILE if number % 2 else list(string.printable.translate(str.maketrans("", "", "\t\r\v\f")))
        data = values(lambda *_: "".join(chance.choice(parts) for _ in range(chance.randrange(12))))
        document = execute(judge, template, data)
        said = wrong(folder, document, data) or (None if valid(folder, document)[0] or number % 30 else document)
        failed += [said] if said else []
    case("nstance: 100 fillings with hostile values arrive", not failed, failed[:2])
    for text in "a\tb", "a\rb", "a\0b", "\x1b[2J", "a\x7f", "é", "\u2028":
        refused = execute(judge, template, values(lambda field, _, text=text: text if field == "ID" else "x"))
        case(f"nstance: {text!r} is refused", refused == "error", refused)
