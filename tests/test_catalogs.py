"""Runs the inputs of the transcript of catalogs with the programs of Debian in a chroot, and compares what they write with the transcript, which vmbake is
compared with by unit tests. `VMBAKE_RENEW=1` writes the transcript anew. Needs root, for chroot, and the Debian archive."""

import os
import pathlib
import subprocess
import tarfile
import tempfile

from harness.paths import BASE_IMAGE, ROOT

TRANSCRIPT = ROOT / "src/compose/src/merge/maintainer/commands/catalogs/transcript.txt"
DIRECTORIES = ["etc/sgml", "etc/xml", "opt", "var/lib/sgml-base", "var/lib/xml-core"]
# Perl, and what it and dpkg-trigger need.
PACKAGES = {"perl-base", "libc6", "libcrypt1", "dash", "dpkg", "libmd0", "libselinux1", "libpcre2-8-0"}


def perl(rootfs, root):
    """The files of Perl of the base, and the programs from the archive."""
    with tarfile.open(rootfs) as tar:
        info = "./var/lib/dpkg/info/"
        lists = [name for name in tar.getnames() if name.startswith(info) and name.endswith(".list") and name[len(info):-5].split(":")[0] in PACKAGES]
        wanted = {line for name in lists for line in tar.extractfile(name).read().decode().split("\n")}
        wanted |= {line.removeprefix("/usr") for line in wanted} | {"/usr" + line for line in wanted}
        tar.extractall(root, [member for member in tar if member.name.removeprefix(".") in wanted or member.name in ("./bin", "./lib", "./lib64", "./sbin")])
    with tempfile.TemporaryDirectory() as name:
        conf = subprocess.check_output([BASE_IMAGE / "apt-root.sh", pathlib.Path(name) / "apt", "amd64"], text=True).strip()
        subprocess.run(["apt-get", "-qq", "download", "sgml-base", "xml-core"], env={**os.environ, "APT_CONFIG": conf}, cwd=name, check=True)
        for package in pathlib.Path(name).glob("*.deb"):
            files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
            subprocess.run(["tar", "x", "-C", root, "./usr"], stdin=files.stdout, check=True)
            files.wait()
    for folder in [*DIRECTORIES, "tmp", "var/lib/dpkg/triggers"]:
        (root / folder).mkdir(parents=True, exist_ok=True)


def state(root):
    found = {}
    for folder in DIRECTORIES:
        for path in sorted((root / folder).iterdir()):
            if path.is_file() and not path.is_symlink():
                found[f"/{folder}/{path.name}"] = path.read_text()
    return dict(sorted(found.items()))


def lines_of(text):
    return text.removesuffix("\n").split("\n") if text else []


def shown(text):
    return "".join(f"|{line}\n" for line in lines_of(text))


def run(root, program, args):
    before = state(root)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DPKG_MAINTSCRIPT_PACKAGE": "p", "DPKG_MAINTSCRIPT_ARCH": "all"}
    ran = subprocess.run(["chroot", root, program, *args], env=env, capture_output=True, text=True)
    now, text = state(root), f"status {ran.returncode}\n"
    # Warnings come in the order of the directory.
    said = sorted(ran.stdout.splitlines(keepends=True), key=lambda line: line.partition("`")[2])
    for name, written in ("stdout", "".join(said)), ("stderr", ran.stderr.split(" at /usr/sbin/")[0]):
        text += f"{name}\n{shown(written)}" if written else ""
    text += "".join(f"new {path}\n{shown(content)}" for path, content in now.items() if before.get(path) != content)
    return text + "".join(f"gone {path}\n" for path in before if path not in now)


def replay(root, transcript):
    """The transcript with what the programs wrote now."""
    made, lines = "", lines_of(transcript)
    while lines:
        line, given = lines.pop(0), []
        while lines and lines[0].startswith("|"):
            given.append(lines.pop(0)[1:])
        word, _, rest = line.partition(" ")
        if word not in ("put", "bare", "link", "directory", "run", "#"):
            continue
        made += line + "\n" + "".join(f"|{text}\n" for text in given)
        path = root / rest.split(" ")[0].lstrip("/")
        if word in ("put", "bare"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text("\n".join(given) + ("\n" if word == "put" else ""))
        elif word == "link":
            path.symlink_to(rest.split(" ")[1])
        elif word == "directory":
            path.mkdir(parents=True)
        elif word == "run":
            made += run(root, rest, given)
    return made


def test_transcript(rootfs):
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        perl(rootfs, root)
        transcript = TRANSCRIPT.read_text()
        made = replay(root, transcript)
    if os.environ.get("VMBAKE_RENEW"):
        TRANSCRIPT.write_text(made)
    assert made == transcript
