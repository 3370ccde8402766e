"""Compares vmbake's dependency resolution with apt-get's: the packages of closure.list
one by one and in groups of 40, for amd64 and arm64, with and without what they recommend, and on a base with older packages. Both read
the same indexes and the same record of installed packages. Needs no root, but the Debian archive."""

import json
import os
import re
import subprocess

import pytest

from harness.paths import BASE_IMAGE, TESTS

pytestmark = [pytest.mark.slow, pytest.mark.needs("apt-get")]
LIST = (TESTS / "closure.list").read_text().split()
ONE = [[name] for name in LIST]
GROUP = 40
SUITES = ["trixie", "trixie-updates", "trixie-security"]
# Packages with earlier versions on an older base: libraries, programs and sets of packages that must have the same version.
OLDER = {"curl", "e2fsprogs", "gnutls28", "krb5", "libcap2", "ncurses", "openssl", "perl", "python3.13", "systemd", "util-linux", "xz-utils"}
INSTALL = re.compile(r"^Inst (\S+?)(?::\S+)? (?:\[\S+\] )?\((\S+) ", re.M)
REMOVE = re.compile(r"^Remv (\S+)", re.M)


def mirrors():
    """Where the host's apt gets Debian and its security updates from."""
    shown = subprocess.run(["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"], stdout=subprocess.PIPE, text=True).stdout
    found = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    return found.get("Debian"), found.get("Debian-Security")


class Apt:
    """A separate apt configuration for one architecture, with archives in vmbake's order."""

    def __init__(self, work, arch):
        self.work, self.arch = work / arch, arch
        script = BASE_IMAGE / "apt-root.sh"
        conf = subprocess.run([script, self.work, arch], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.env = {**os.environ, "APT_CONFIG": conf, "LC_ALL": "C.UTF-8"}
        main = (self.work / "sources.list").read_text().strip()
        _, security = mirrors()
        lines = [main, main.replace(" trixie main", " trixie-updates main")]
        if security:
            head = main[: main.index("]") + 1]
            lines.append(f"{head} {security} trixie-security main")
        (self.work / "sources.list").write_text("\n".join(lines) + "\n")
        subprocess.run(["apt-get", "-qq", "update"], env=self.env, check=True)
        lists = self.work / "state/lists"
        found = [sorted(lists.glob(f"*_{suite}_main_binary-{arch}_Packages")) for suite in SUITES]
        self.indexes = [paths[0] for paths in found if paths]

    def install(self, names, status, *options):
        """Packages to install, or why not: only packages with a `-` behind their names may be removed."""
        command = ["apt-get", "install", "-s", "-y", "-o", f"Dir::State::status={status}", *options, *names]
        ran = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        removed = [name for name in REMOVE.findall(ran.stdout) if f"{name}-" not in names]
        if ran.returncode or removed:
            return None, f"removes {' '.join(removed)}" if removed else ran.stdout[-600:]
        return dict(INSTALL.findall(ran.stdout)), ""

    def stanzas(self):
        for path in self.indexes:
            for text in path.read_text().split("\n\n"):
                head = dict(line.split(": ", 1) for line in text.split("\n") if line.startswith(("Package: ", "Version: ", "Source: ")))
                if head:
                    yield head, text

    def base(self):
        """The record that dpkg has on the base image of the tests, and one in which some packages are older."""
        packages = [line.replace("ARCH", self.arch) for line in (BASE_IMAGE / "packages").read_text().split()]
        chosen, said = self.install(["?or(?essential,?priority(required))", "apt", *packages], self.work / "status")
        assert chosen, said
        plain, older, left = [], [], dict(chosen)
        versions = {}
        for head, text in self.stanzas():
            if left.get(head["Package"]) == head["Version"]:
                del left[head["Package"]]
                kept = [line for line in text.split("\n") if not re.match("(Filename|Size|MD5sum|SHA256): ", line)]
                plain.append("\n".join([kept[0], "Status: install ok installed", *kept[1:]]))
                if head.get("Source", head["Package"]).split(" ")[0] in OLDER:
                    versions[head["Package"]] = head["Version"]
        assert not left, left
        for text in plain:
            name = text.split("\n", 1)[0].removeprefix("Package: ")
            if name in versions:
                text = text.replace(f"\nVersion: {versions[name]}\n", f"\nVersion: {versions[name]}~0\n")
            older.append(re.sub(r"(\S+) \(([<>=]+) (\S+)\)", lambda found: older_relation(found, versions), text))
        for name, texts in [("base", plain), ("older", older)]:
            (self.work / name).write_text("\n\n".join(texts) + "\n")
        return self.work / "base", self.work / "older"


def older_relation(found, versions):
    """A relation to one of the older packages that only its real version satisfies."""
    name, operator, version = found.groups()
    same = versions.get(name.split(":")[0]) == version
    return f"{name} ({operator} {version}~0)" if same else found.group(0)


def vmbake(closure, apt, status, groups, *options):
    command = [closure, *options, apt.arch, status, *apt.indexes]
    asked = "".join(" ".join(names) + "\n" for names in groups)
    ran = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def together(closure, apt, status):
    """Groups of packages that go together: each goes into the first group that it does not spoil."""
    command = [closure, apt.arch, status, *apt.indexes]
    groups = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:

        def fits(names):
            asked.stdin.write(" ".join(names) + "\n")
            asked.stdin.flush()
            return "packages" in json.loads(asked.stdout.readline())

        for name in LIST:
            if fits([name]):
                place = next((group for group in groups if len(group) < GROUP and fits([*group, name])), None)
                if place is None:
                    groups.append([name])
                else:
                    place.append(name)
    return groups


def compare(closure, apt, status, groups, recommends=False):
    """Every difference is a failure; packages that apt could only install by removing others must be refused."""
    options = ["-o", f"APT::Install-Recommends={str(recommends).lower()}"]
    answers = vmbake(closure, apt, status, groups, *(["--recommends"] if recommends else []))
    wrong, refused, count = [], 0, 0
    for names, answer in zip(groups, answers, strict=True):
        expected, said = apt.install(names, status, *options)
        found = answer.get("packages")
        label = names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"
        if expected is None or found is None:
            refused += 1
            if (expected is None) != (found is None):
                wrong.append(f"{label}: apt {said or 'installs it'}, vmbake {answer.get('error', 'chooses it')}")
            continue
        count += len(found)
        if found != expected:
            def only(a, b):
                return " ".join(sorted(f"{name}={a[name]}" for name in a if b.get(name) != a[name]))
            wrong.append(f"{label}: only apt: {only(expected, found)}; only vmbake: {only(found, expected)}")
    print(f"{len(groups)} times, {count} packages, {refused} refused by both")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def closure(examples):
    return examples / "closure"


@pytest.fixture(scope="module", params=["amd64", "arm64"])
def apt(request, tmp_path_factory):
    if not all(mirrors()):
        pytest.skip("needs the Debian archive and its security updates in the sources of apt")
    return Apt(tmp_path_factory.mktemp("closure"), request.param)


@pytest.fixture(scope="module")
def bases(apt):
    """The records of the base and of the older one."""
    return apt.base()


def test_closure_one_by_one(closure, apt, bases):
    compare(closure, apt, bases[0], ONE)


def test_closure_in_groups(closure, apt, bases):
    compare(closure, apt, bases[0], together(closure, apt, bases[0]))


def test_closure_with_recommended(closure, apt, bases):
    compare(closure, apt, bases[0], ONE[::5], recommends=True)


def test_closure_on_an_older_base(closure, apt, bases):
    compare(closure, apt, bases[1], ONE[::2])


def test_closure_with_removals(closure, apt, bases):
    """Every package of the base, removed alone; and packages that take the place of others."""
    names = re.findall(r"^Package: (\S+)$", bases[0].read_text(), re.M)
    assert len(names) > 100, names
    compare(closure, apt, bases[0], [[f"{name}-"] for name in names])
    compare(closure, apt, bases[0], [[new, "systemd-timesyncd-"] for new in ("chrony", "ntpsec", "openntpd", "nginx", "postfix")])
    compare(closure, apt, bases[0], [[name, "less-", "nano-"] for name in LIST[::10]])
