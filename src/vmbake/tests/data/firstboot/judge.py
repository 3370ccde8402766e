"""Judges what `firstboot configure` left below each ROOT, with the real Jinja and with parsers of the formats.

From the plan and the three files of variables alone it works out which files there have to be and what is in them, and
compares. Then the files with a format are parsed, and every value has to be in them unchanged.
"""

import base64
import functools
import ipaddress
import json
import pathlib
import re
import shlex
import stat
import sys
import tomllib
import urllib.parse

import jinja2
import yaml

INPUTS = ("user_data", "detected", "mutable")
# Beside control characters: what YAML or TOML do not take as it is.
ESCAPED = re.compile("[\x00-\x1f\"\\\\\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def quoted(text):
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return '"' + ESCAPED.sub(lambda found: short.get(found[0], f"\\u{ord(found[0]):04x}"), text) + '"'


def plain(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_json(value):
    if isinstance(value, list):
        return "[" + ", ".join(map(quoted, value)) + "]"
    return quoted(value) if isinstance(value, str) else plain(value)


def url(text, part):
    parts = urllib.parse.urlsplit(text)
    known = {"scheme": parts.scheme, "host": parts.hostname, "path": parts.path}
    return known[part] if part != "port" else str(parts.port or {"http": 80, "https": 443}[parts.scheme])


FILTERS = {
    "int": int,
    "split": lambda text, by: [part.strip() for part in text.split(by) if part.strip()],
    "lines": lambda text: list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())),
    "base64": lambda text: base64.b64decode("".join(text.split()), validate=True).decode(),
    "url": url,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}


def language(finalize):
    blocks = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, finalize=finalize, **blocks)
    environment.filters.update(FILTERS)
    # Only addresses are looked up here: they are their own.
    environment.globals["addresses"] = lambda host: [str(ipaddress.ip_address(host))]
    return environment


LANGUAGES = {"text": language(plain), "json": language(as_json)}


@functools.cache
def template(text, notation):
    return LANGUAGES[notation].from_string(text)


@functools.cache
def expression(text):
    return LANGUAGES["text"].compile_expression(text, undefined_to_none=False)


def render(text, scope, notation="text"):
    return template(text, notation).render(scope)


def holds(rule, scope):
    return "when" not in rule or bool(expression(rule["when"])(**scope))


def assignment(entry):
    return {"name": entry, "value": "{{ " + entry + " }}"} if isinstance(entry, str) else entry


def read_variables(path):
    words = shlex.split(path.read_text(), comments=True)
    return dict(word.split("=", 1) for word in words)


def variables(plan, root):
    """Every variable with its value: the last file that has one, under any of its names, or the default; then those made of others."""
    files = [read_variables(root / plan["inputs"][name][1:]) for name in INPUTS]
    def find(name):
        return next((file[name] for file in reversed(files) if name in file), "")
    scope = {entry["name"]: find(entry["name"]) for entry in plan["detect"] + plan["values"]}
    for name, variable in plan["variables"].items():
        names = [name, *variable.get("aliases", [])]
        last = next((file for file in reversed(files) if file.keys() & set(names)), {})
        said = next((last[one] for one in names if last.get(one)), "")
        scope[name] = said if variable.get("empty") and last else said or variable.get("default", "")
    for entry in plan["values"]:
        if holds(entry, scope):
            scope[entry["name"]] = render(entry["value"], scope)
    return scope


def line(name, value, bare):
    if bare and re.fullmatch("[A-Za-z0-9_]+", value):
        return f"{name}={value}\n"
    return f"{name}='" + value.replace("'", "'\"'\"'") + "'\n"


def environment(entries, scope):
    entries = [entry for entry in map(assignment, entries) if holds(entry, scope)]
    return "".join(line(entry["name"], render(entry["value"], scope), entry.get("bare")) for entry in entries)


def content(rule, scope, root):
    [(kind, what)] = rule["content"].items()
    if kind == "environment":
        return environment(what, scope)
    if kind == "text":
        return render(what, scope)
    more = {name: render(text, scope) for name, text in what.get("with", {}).items()}
    return render((root / what["file"][1:]).read_text(), scope | more, what["format"])


def ids(root, file):
    return {line.split(":")[0]: int(line.split(":")[2]) for line in (root / "etc" / file).read_text().splitlines()}


def judge_file(rule, scope, root):
    """What is wrong with the file of a rule."""
    path = root / render(rule["path"], scope)[1:]
    if not holds(rule, scope):
        if path.exists() and not rule.get("keep"):
            yield f"{path} should not be there"
        return
    if not path.is_file():
        yield f"{path} is missing"
        return
    expected, found = content(rule, scope, root), path.read_text()
    if found != expected:
        yield f"{path}: expected\n{expected}\nfound\n{found}"
    status = path.stat()
    owner = (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
    users, groups = ids(root, "passwd"), ids(root, "group")
    if owner != (int(rule["mode"], 8), users[rule.get("owner", "root")], groups[rule.get("group", "root")]):
        yield f"{path}: owner {owner} is not that of {rule}"


def kubeconfig(document, scope, name):
    [cluster], [user], [context] = (document[key] for key in ("clusters", "users", "contexts"))
    address = f"https://kube-apiserver.podplane.internal:{scope['KUBE_API_PORT']}"
    assert cluster["cluster"] == {"certificate-authority": "/opt/crt/ca.crt", "server": address}, cluster
    files = {"client-certificate": f"/opt/crt/{name}.client.crt", "client-key": f"/opt/key/{name}/{name}.client.key"}
    assert user == {"name": name, "user": files}, user
    assert context["context"] == {"cluster": cluster["name"], "user": name}, context
    assert document["current-context"] == context["name"] and document["kind"] == "Config", document


def fluent_bit(document, scope, _):
    pipeline = document["pipeline"]
    inputs = {entry["name"]: entry for entry in pipeline["inputs"]}
    outputs = {entry["name"]: entry for entry in pipeline["outputs"]}
    services = FILTERS["split"](scope["TELEMETRY_LOG_SERVICES"], ",")
    journal = inputs.get("systemd", {"systemd_filter": []})
    assert journal["systemd_filter"] == [f"_SYSTEMD_UNIT={name}.service" for name in services], inputs
    assert ("tail" in inputs) == (scope["TELEMETRY_LOG_CLOUDINIT"] == "true"), inputs
    assert ("s3" in outputs) == bool(scope["TELEMETRY_S3_BUCKET"]), outputs
    assert ("opentelemetry" in outputs) == bool(scope["TELEMETRY_OTLP_ENDPOINT"]), outputs
    # Records wait where there is no target, and nowhere else.
    assert ("http" in outputs) == (not {"s3", "opentelemetry"} & set(outputs)), outputs
    assert all(output["retry_limit"] == "no_limits" for output in outputs.values()), outputs
    assert {entry["match"] for entry in pipeline["filters"]} == {"systemd.*", "cloudinit.*"}, pipeline
    if s3 := outputs.get("s3"):
        names = {"bucket": "BUCKET", "endpoint": "ENDPOINT", "role_arn": "ASSUME_ROLE"}
        for key, name in names.items():
            assert s3.get(key, "") == scope[f"TELEMETRY_S3_{name}"], (key, s3)
        assert s3.get("region", "") == (scope["TELEMETRY_S3_REGION"] or scope["PROVIDER_REGION"]), s3
    if otlp := outputs.get("opentelemetry"):
        assert isinstance(otlp["port"], int) and isinstance(otlp["tls"], bool), otlp
        address = f"{'https' if otlp['tls'] else 'http'}://{otlp['host']}:{otlp['port']}{otlp['logs_uri']}"
        parts = urllib.parse.urlsplit(scope["TELEMETRY_OTLP_ENDPOINT"])
        port = parts.port or (443 if parts.scheme == "https" else 80)
        assert address == f"{parts.scheme}://{parts.hostname}:{port}{parts.path or '/v1/logs'}", address


def zot(document, scope, _):
    driver, http = document["storage"]["storageDriver"], document["http"]
    assert driver.get("region") in (None, scope["REGISTRY_REGION"] or scope["PROVIDER_REGION"] or "us-east-1"), driver
    assert driver["bucket"] == scope["REGISTRY_BUCKET"], driver
    assert driver["name"] == ("gcs" if scope["PROVIDER_KIND"] == "google" else "s3"), driver
    if driver["name"] == "s3":
        endpoint = scope["REGISTRY_ENDPOINT"]
        assert driver.get("regionendpoint", "") == endpoint and driver["secure"] != endpoint.startswith("http://"), driver
    assert http["address"] == ("[::1]" if scope["INSTANCE_IPV6"] else "127.0.0.1"), http
    assert http["port"] == "5000" and document["distSpecVersion"] == "1.1.0", document
    [(pattern, rules)] = http["accessControl"]["repositories"].items()
    assert (pattern, rules["policies"]) == ("**", [{"users": ["containerd.client"], "actions": ["read"]}]), http


def containerd(document, scope, _):
    sandbox = document["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"]
    on = scope["REGISTRY_ENABLED"] == "true" and scope["REGISTRY_HOSTNAME"] and scope["REGISTRY_BUCKET"]
    prefix = f"{scope['REGISTRY_HOSTNAME']}/mirror/" if on else ""
    assert sandbox.startswith(f"{prefix}registry.k8s.io/pause:"), sandbox
    assert document["version"] == 3 and document["grpc"]["gid"] == 904, document


def hosts(document, scope, _):
    [(address, host)] = document["host"].items()
    assert address == ("https://[::1]:5000" if scope["INSTANCE_IPV6"] else "https://127.0.0.1:5000"), address
    assert host["capabilities"] == ["pull", "resolve"], host


def netsy(document, scope, _):
    storage = document["storage"]
    assert document["cluster_id"] == scope["CLUSTER_ID"], document
    names = {"bucket_name": "NETSY_BUCKET", "key_prefix": "NETSY_KEY_PREFIX"}
    assert all(storage[key] == scope[name] for key, name in names.items()), storage


def kubelet(document, scope, _):
    assert document["clusterDNS"] == [str(ipaddress.ip_address(one)) for one in scope["KUBE_CLUSTER_DNS"].split(",")], document
    assert document["clusterDomain"] == "cluster.local" and document["kind"] == "KubeletConfiguration", document


def jsonc(text):
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


# Name of the file -> what reads it, and what must be in it.
FORMATS = {
    "kubeconfig": (yaml.safe_load, kubeconfig),
    "kubelet.yaml": (yaml.safe_load, kubelet),
    "fluent-bit.yml": (yaml.safe_load, fluent_bit),
    "zot.yml": (yaml.safe_load, zot),
    "config.toml": (tomllib.loads, containerd),
    "hosts.toml": (tomllib.loads, hosts),
    "cluster.jsonc": (jsonc, netsy),
}


def judge_mutable(plan, root):
    """`bootstrap` writes every mutable variable: what user data says, or the default. What was delivered since counts more, and
    has all that it does not leave to user data. Unlisted variables are not copied from those."""
    given, path = read_variables(root / plan["inputs"]["user_data"][1:]), root / plan["inputs"]["mutable"][1:]
    unlisted = {one for name, variable in plan["variables"].items() if variable.get("unlisted") for one in [name, *variable.get("aliases", [])]}
    given = {name: value for name, value in given.items() if name not in unlisted}
    delivered = root / plan["receive"]["directory"][1:] / plan["receive"]["mutable"]
    if delivered.exists():
        # Values are the rest of their lines, without quotes.
        given |= dict(line.split("=", 1) for line in delivered.read_text().splitlines())
    wanted = {}
    for name, variable in plan["variables"].items():
        names = [one for one in [name, *variable.get("aliases", [])] if one in given]
        if variable.get("mutable") and (any(map(given.get, names)) or not variable.get("unlisted")):
            default = "" if names else variable.get("default", "")
            wanted[name] = next((given[one] for one in names if given[one]), default)
    if path.read_text() != "".join(line(*pair, bare=False) for pair in sorted(wanted.items())):
        yield f"{path}: expected {wanted}"


def judge(root):
    plan = json.loads((root / "opt/podplane/share/firstboot.json").read_text())
    for key in ("detect", "values", "files"):
        plan.setdefault(key, [])
    yield from judge_mutable(plan, root)
    scope = variables(plan, root)
    for rule in plan["files"]:
        yield from judge_file(rule, scope, root)
        path = root / render(rule["path"], scope)[1:]
        if path.name in FORMATS and path.is_file():
            read, must = FORMATS[path.name]
            must(read(path.read_text()), scope, path.parent.parent.name)
    wanted = render(plan["blocks"][0]["text"], scope) if holds(plan["blocks"][0], scope) else ""
    lines = (root / plan["blocks"][0]["path"][1:]).read_text().splitlines(keepends=True)
    found = "".join(line for line in lines if line.endswith("kube-apiserver.podplane.internal\n"))
    if found != wanted:
        yield f"{root}: hosts are {found!r}, not {wanted!r}"


def main():
    wrong = [message for root in sys.argv[1:] for message in judge(pathlib.Path(root))]
    print("\n".join(wrong) or f"{len(sys.argv) - 1} trees are right")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
