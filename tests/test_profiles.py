"""harness/profiles/worker.yaml, imported from release sites on loopback, twice, in two directories, and by two users if possible, and baked: checks of the contents.
Then the import must refuse: a version whose content has changed, values with shell syntax, malicious sites. Every provider, version and architecture is tried, and
compared with the table of the program, src/profile/src/import/support.json, which the test writes if WRITE_SUPPORT is set.

In the slow tests machines of that profile, and of the one of OSM itself, join a fake API server.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import tempfile

import pytest
import yaml

from harness.documents import run_commands
from harness.profiles import api, boot, support
from harness.profiles import image as expected
from harness.profiles.lab import DEPLOYMENT, KUBERNETES, PROFILE, Lab, skipped
from harness.report import case
from harness.run import run

# Most bytes of user data.
MOST = 6144
TAINTS, DNS = "example.org/new=true:NoSchedule", "10.96.0.10,fd00::10"
# Taints that would end an option, begin another one, or become a template.
HOSTILE = {
    "a quote": 'a="b:NoSchedule', "an apostrophe": "a='b:NoSchedule", "two lines": "a=b:NoSchedule\nExecStartPre=/bin/false",
    "a template": "a={{ b }}:NoSchedule", "a space": "a=b:NoSchedule --v=9", "a variable": "a=$HOME:NoSchedule", "a specifier": "a=%H:NoSchedule",
    "a backslash": "a=b\\n:NoSchedule"}


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="profiles.", dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        # Another user needs access.
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def lab(vmbake, base, store, folder):
    with Lab(vmbake, base, store, folder) as lab:
        yield lab


@pytest.fixture(scope="module")
def server(folder):
    with api.Server(folder) as server:
        yield server


def texts(folder):
    """All files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def settings(folder, server, **more):
    """The settings of a machine, as a file from user data."""
    values = {"BOOTSTRAP_KUBECONFIG": encoded(server.kubeconfig()), "KUBERNETES_CA": encoded(server.authority.pem), "CLUSTER_DNS": DNS}
    values |= {"INITIAL_TAINTS": TAINTS, **more}
    path = folder / "settings"
    path.write_text("".join("{}='{}'\n".format(name, value.replace("'", "'\"'\"'")) for name, value in values.items()))
    return path


def stranger(folder):
    """Runs a program as another user if possible, and in another environment."""
    other = folder / "other"
    other.mkdir()
    words = ["sh", "-c", 'umask 077 && exec "$@"', "sh"]
    if os.getuid() == 0:
        shutil.chown(other, "nobody", "nogroup")
        words = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *words]
    return other, words, {"HOME": str(other), "XDG_CACHE_HOME": str(other / "cache"), "XDG_CONFIG_HOME": str(other / "config"), "TZ": "Pacific/Auckland",
                          "LC_ALL": "C", "USER": "nobody"}


def readable(path, folder):
    """A link to a file for a user who may not reach its folder, or a copy."""
    there = folder / path.name
    try:
        os.link(path, there)
    except OSError:
        shutil.copyfile(path, there)
    return there


@pytest.fixture(scope="module")
def imported(lab):
    """Imports by two users in two folders; the first one's folder and kind."""
    one = lab.folder / "one"
    status, kind, said = lab.imports(one, *lab.pins())
    case("a profile is imported and pinned", status == 0 and re.fullmatch(r"worker-pool-[0-9a-f]{8}\n", kind), kind + said)
    kind = kind.strip()
    other, before, habits = stranger(lab.folder)
    for path in PROFILE, DEPLOYMENT:
        shutil.copyfile(path, other / f"their-{path.name}")
    two = other / "out"
    status, again, said = lab.imports(
        two, *lab.pins(other / "store", readable(lab.base, lab.folder)), profile=other / f"their-{PROFILE.name}",
        deployment=other / f"their-{DEPLOYMENT.name}", before=before, **habits)
    case("another user imports it, in another directory", status == 0 and again.strip() == kind, again + said)
    ours, theirs = texts(one), texts(two)
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    wanted = {"profile.lock.json", f"manifests/{kind}.debian-13.amd64.json", f"reports/{kind}.json"}
    wanted |= {f"layers/{kind}/layer.json", f"layers/{kind}-profile/layer.json"}
    case("layers, manifests, report and lock are the same bytes", not differing and wanted <= set(ours), differing or sorted(ours))
    # The rest of the tests uses that store, too.
    for path in [other / "store", *(other / "store").rglob("*")] if os.getuid() == 0 else []:
        os.chown(path, 0, 0, follow_symlinks=False)
    # An image needs no more than that, and no more may be there.
    stray = [name for name in ours if not name.startswith((f"layers/{kind}/", f"layers/{kind}-profile/")) and name not in wanted]
    case("an import leaves nothing else", not stray, stray)
    return one, kind


def is_like(entry, kind, mode, owner=(0, 0)):
    """Whether a path is of a kind, with a mode and an owner, by default root."""
    return entry and entry["type"] == kind and int(entry["mode"], 8) & 0o7777 == mode and (entry["uid"], entry["gid"]) == owner


def test_profiles_image(lab, imported):
    """Bakes it, and checks the contents."""
    out, kind = imported
    image = lab.bake(out, kind)
    listed = {entry["path"]: entry for entry in map(json.loads, lab.must("ls", image, "/", "-R", "--json").splitlines())}
    wrong = {}
    for path, (mode, content) in expected.FILES.items():
        entry = listed.get(path)
        if not is_like(entry, "regular file", mode, expected.OWNERS.get(path, (0, 0))):
            wrong[path] = entry
        elif content is not None and (found := lab.must("cat", image, path)) != content:
            wrong[path] = found
    wrong |= {path: listed.get(path) for path, target in expected.LINKS.items() if listed.get(path, {}).get("target") != target}
    wrong |= {path: listed.get(path) for path, mode in expected.DIRECTORIES.items() if not is_like(listed.get(path), "directory", mode)}
    case("the image has what the profile promises", not wrong, json.dumps(wrong, indent=1))
    present = [path for path in expected.ABSENT if path in listed]
    case("and nothing of what made it", not present, present)
    talks = {path: word for path, entry in listed.items() if entry["type"] == "regular file" and path.startswith(expected.OWN)
             for word in expected.WORDS if word in lab.must("cat", image, path)}
    case("no file of it fetches provisioning or installs", not talks, talks)
    status, said, stderr = lab.run("lint", image)
    case("lint finds nothing", status == 0, said + stderr)


def rendered(lab, out, kind, path, *more):
    return lab.run("user-data", "render", "--kind", kind, "--layers", out / "layers", "--env", path, *more)


def addresses(text):
    """Everything in a text that looks like an address, with what is in base64 in it, and what is in base64 in that."""
    found = set(re.findall(r"https?://[^\s'\"]+", text)) | set(re.findall(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", text))
    for word in re.findall(r"[A-Za-z0-9+/]{40,}={0,2}", text):
        try:
            inner = base64.b64decode(word, validate=True).decode()
        except ValueError:
            continue
        found |= addresses(inner)
    return found


def test_profiles_user_data(lab, imported, server):
    """User data of a machine: small, valid, and without any address but that of the API server and of the cluster's DNS."""
    out, kind = imported
    status, text, said = rendered(lab, out, kind, settings(lab.folder, server))
    case(f"user data is rendered, in {len(text.encode())} bytes", status == 0 and len(text.encode()) <= MOST, text + said)
    found = addresses(text)
    case("no address is in it but the API server's, and the cluster's DNS", found == {api.SERVER, api.ADDRESS, DNS.split(",")[0]}, found)
    files = yaml.safe_load(text)
    case("it is a file of settings, and nothing to run", not set(files) & {"runcmd", "bootcmd", "packages", "apt"} and len(files["write_files"]) == 1, text)
    if not shutil.which("cloud-init"):
        skipped("cloud-init, which judges user data, is not installed")
    else:
        path = lab.folder / "user-data"
        path.write_text(text)
        valid = run("cloud-init", "schema", "--config-file", path)
        case("cloud-init finds it valid", valid.returncode == 0, valid.stdout + valid.stderr)
    for name, taints in HOSTILE.items():
        status, text, said = rendered(lab, out, kind, settings(lab.folder, server, INITIAL_TAINTS=taints))
        case(f"taints with {name} are refused", status == 1 and not text and "INITIAL_TAINTS" in said, text + said)
    for name, value in {"KUBERNETES_CA": "no base64", "CLUSTER_DNS": "10.0.0.1,\n- x"}.items():
        status, text, said = rendered(lab, out, kind, settings(lab.folder, server, **{name: value}))
        case(f"a wrong {name} is refused", status == 1 and not text and name in said, text + said)
    status, text, said = lab.run("user-data", "render", "--kind", kind, "--layers", out / "layers")
    case("what machines cannot do without is asked for", status == 1 and "BOOTSTRAP_KUBECONFIG" in said and "KUBERNETES_CA" in said, text + said)


def test_profiles_lock(lab, imported):
    """A version stands for one content."""
    out, _ = imported
    before = texts(out)
    text = PROFILE.read_text()
    changed = lab.folder / "changed.yaml"
    changed.write_text(text.replace("kernel.panic = 10", "kernel.panic = 11"))
    status, kind, said = lab.imports(out, "--no-pin", profile=changed)
    case("another content of the same version is refused", status == 1 and not kind and "v1.2.0" in said, kind + said)
    case("and nothing is written", texts(out) == before, sorted(texts(out)))
    status, kind, said = lab.imports(out, "--no-pin")
    case("the same content is fine", status == 0 and kind.strip() in json.loads(before["profile.lock.json"])["instances"], kind + said)
    changed.write_text(changed.read_text().replace("version: v1.2.0", "version: v1.2.1"))
    status, kind, said = lab.imports(out, "--no-pin", profile=changed)
    case("a new version is, too", status == 0, kind + said)
    token = lab.folder / "token"
    token.write_text(api.OSM_TOKEN)
    status, kind, said = lab.imports(lab.folder / "secret", "--no-pin", "--set", f"api-server-token={token}")
    case("a token has no place in an image", status == 1 and not (lab.folder / "secret/layers").exists() and api.OSM_TOKEN not in said, kind + said)


def test_profiles_cheating_sites(lab, imported):
    """Sites whose files are not those that their lists, or manifests, name. The store has everything else."""
    out, kind = imported
    site, store = f"/dl.k8s.io/{KUBERNETES}/bin/linux/amd64/kubelet", lab.folder / "other/store"
    pinned = json.loads((out / f"manifests/{kind}.debian-13.amd64.json").read_text())["vmconfig"]["dependencies"]["kubelet"]["digest"]
    blob = pathlib.Path(lab.must("store", "path", pinned, "--store", store).strip())
    blob.unlink()
    places = ("--layers", out / "layers", "--store", store, *lab.mirrors)
    for number, (what, path) in enumerate({"a file that its list does not name": site, "a list that names another file": f"{site}.sha256"}.items()):
        fresh = lab.folder / f"fresh-{number}"
        lab.fault(path, "flip")
        status, said, stderr = lab.run("update", kind, "--manifests", fresh, "--image", lab.base, *places)
        # The rest is pinned, so that another run has less to do.
        left = json.loads((fresh / f"{kind}.debian-13.amd64.json").read_text())["vmconfig"]["dependencies"]
        case(f"update refuses {what}", status == 1 and "kubelet: https://dl.k8s.io/" in stderr and "kubelet" not in left, said + stderr)
    lab.fault(site, "flip")
    words = ("fetch", kind, "--manifests", out / "manifests", "--without-base", *places)
    status, said, stderr = lab.run(*words)
    case("fetch refuses another file than the one that is pinned", status == 1 and "kubelet" in stderr and not blob.exists(), said + stderr)
    lab.fault(None, None)
    status, said, stderr = lab.run(*words)
    case("and takes the right one", status == 0 and blob.exists(), said + stderr)


def test_profiles_support(lab):
    support.judged(lab, is_written="WRITE_SUPPORT" in os.environ)


@pytest.mark.boot
@pytest.mark.slow
def test_profiles_boot(lab):
    boot.booted(lab)


@pytest.mark.boot
@pytest.mark.slow
def test_profiles_boot_compared(lab):
    """A machine by OSM itself starts as well."""
    boot.compared(lab)


@pytest.mark.boot
@pytest.mark.slow
def test_profiles_boot_documented(lab, checkout, vmbake):
    """docs/profiles.md, word for word, to a machine that runs containerd, with what the release sites on loopback have."""
    mirrors = " ".join(word for word in map(str, lab.mirrors) if word != "--mirror")
    run_commands("docs/profiles.md", checkout, vmbake, boot=True, VMBAKE_MIRRORS=mirrors)
