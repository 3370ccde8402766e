"""The documentation: every relative link must lead to an existing file and heading, and every command in a fenced block of the language `console` must run and
print what the block shows.

A command follows `$ `, further lines of it `> `. Of its output, on stdout and stderr together, the words must match; numbers, versions,
digests and addresses may be others. `...` stands for the rest of a line, or on a separate line for any lines. Every command must
succeed. A block that only shows something has another language (`text`, `sh`).

Commands run in a temporary folder that looks like the checkout after `make bake`, with the release as `dist`, and a store with the same blobs: what
they write there is gone afterwards. Blocks of the language `console boot` start machines, which takes minutes: only the slow tests run them, with the others of
that document.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.parse

import pytest

from harness.paths import ROOT
from harness.report import case

# Folders without documents of ours.
NOT_OURS = {".git", "target", "dist", "cache"}
FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[^`\n]*)\n(?P<body>.*?)^(?P=fence)\s*?$\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
TIMEOUT = 120
# Of a document whose machines are started, under emulation.
BOOT_TIMEOUT = 1200


def documents():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))


def anchors(text):
    """The names that GitHub gives to headings."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = base = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        number = 0
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found.add(name)
    return found


def has_both_schemes(picture):
    """Whether an SVG defines colours for a light and for a dark page, and a text for readers who do not see it."""
    return "@media (prefers-color-scheme: dark)" in picture and "<title" in picture


def broken_links(document, text):
    """Each relative link of a document that leads nowhere, or to a picture that cannot be read in both colour schemes, and why."""
    prose = re.sub(r"(`+)[^`].*?\1", "", FENCE.sub("", text))
    for link in (one or other for one, other in LINK.findall(prose)):
        place, _, anchor = link.partition("#")
        if urllib.parse.urlsplit(link).scheme:
            continue
        target = (document.parent / urllib.parse.unquote(place)).resolve() if place else document
        if not target.exists():
            yield f"{link}: there is no such file"
        elif not target.is_relative_to(ROOT):
            yield f"{link}: is outside of the project"
        elif anchor and anchor not in anchors(target.read_text() if place else text):
            yield f"{link}: there is no such heading"
        elif target.suffix == ".svg" and not has_both_schemes(target.read_text()):
            yield f"{link}: has no colours for prefers-color-scheme: dark"


def commands(text, boot=False):
    """Each command of the blocks of language `console`, and of `console boot` if machines are started, with the output that the block shows."""
    for block in FENCE.finditer(text):
        if block["language"].strip() not in (("console", "console boot") if boot else ("console",)):
            continue
        found = []
        for line in block["body"].splitlines():
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif not found:
                raise ValueError(f"a block begins with output: {line}")
            elif line.startswith("> ") and not found[-1][1]:
                found[-1][0] += "\n" + line[2:]
            else:
                found[-1][1].append(line)
        yield from ((command, output) for command, output in found)


def word(text):
    """A pattern for a word with any numbers."""
    if re.match(r"[0-9]|sha256:|fsverity:", text):
        return r"\S*[0-9]\S*"
    if text.startswith("https://"):
        return r"https://\S+"
    pieces = re.split(r"([0-9A-Za-z]*[0-9][0-9A-Za-z]*)", text)
    return "".join("[0-9A-Za-z]+" if number % 2 else re.escape(piece) for number, piece in enumerate(pieces))


def matches(expected, printed):
    """Whether the lines of a block match the output."""
    pattern = ""
    for line in expected:
        words = line.split()
        if words == ["..."]:
            pattern += r"(?:.*\n)*?"
            continue
        rest = words[-1:] == ["..."]
        pattern += r"[^\S\n]*" + r"[^\S\n]+".join(map(word, words[:-1] if rest else words)) + (".*" if rest else r"[^\S\n]*") + r"\n"
    if printed and not printed.endswith("\n"):
        printed += "\n"
    return re.fullmatch(pattern, printed) is not None


DOCUMENTS = {str(document.relative_to(ROOT)): document for document in documents()}
WITH_COMMANDS = [name for name, document in DOCUMENTS.items() if "```console" in document.read_text()]


@pytest.fixture(scope="module")
def blobs(store):
    """A store with the same blobs."""
    with tempfile.TemporaryDirectory(prefix="docs-store.") as copy:
        shutil.copytree(store / "blobs", pathlib.Path(copy, "blobs"))
        yield copy


@pytest.fixture
def checkout(release, blobs, tmp_path):
    """A copy of the checkout, because commands may write to what they find; images are too large for that, and only read."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=shutil.ignore_patterns(*NOT_OURS))
    shutil.copytree(ROOT / "target/manifests", checkout / "target/manifests")
    shutil.copy(ROOT / "target/base-path", checkout / "target/base-path")
    (checkout / "target/store").symlink_to(blobs)
    (checkout / "dist").mkdir()
    for file in release.iterdir():
        (checkout / "dist" / file.name).symlink_to(file)
    return checkout


def run_commands(document, checkout, vmbake, boot=False, **environment):
    own = {"PATH": f"{vmbake.parent}:{os.environ['PATH']}", "HOME": str(checkout.parent), "LC_ALL": "C.UTF-8"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VMBAKE_", "XDG_", "SOURCE_DATE"))}
    for command, output in commands(DOCUMENTS[document].read_text(), boot):
        result = subprocess.run(["bash", "-c", command], cwd=checkout, env=kept | own | environment, text=True, timeout=BOOT_TIMEOUT if boot else TIMEOUT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        good = result.returncode == 0 and matches(output, result.stdout)
        shown = "\n".join(output)
        case(" ".join(command.replace(chr(92) + chr(10), "").split()), good, f"exit status {result.returncode}; printed:\n{result.stdout}shown:\n{shown}")


@pytest.mark.parametrize("document", WITH_COMMANDS)
def test_commands(document, checkout, vmbake):
    run_commands(document, checkout, vmbake)


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("document", ["docs/bundles.md"])
def test_commands_with_machines(document, checkout, vmbake):
    run_commands(document, checkout, vmbake, boot=True)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document):
    broken = list(broken_links(DOCUMENTS[document], DOCUMENTS[document].read_text()))
    assert not broken


@pytest.mark.parametrize(("expected", "verdict"), {
    "   wrote  dist/a.debian-12.amd64.raw, 2.50 GiB\nsha256:11ee  x": True,
    "   wrote  ...\n...": True,
    "...\nsha256:11ee x": True,
    "...": True,
    "": False,
    "   wrote  dist/a.debian-12.amd64.raw, 2.50 GiB": False,
    "   wrote  dist/b.debian-12.amd64.raw, 2.50 GiB\n...": False,
    "   read  ...\n...": False,
    "   wrote  dist/a.debian-12.amd64.raw, 2.50 MiB\n...": False,
}.items())
def test_differences_that_are_noticed(expected, verdict):
    said = "   wrote  dist/a.debian-13.amd64.raw, 3.00 GiB\nsha256:00ff  x\n"
    assert matches(expected.splitlines(), said) == verdict


PAGE = "# One `two`\n# One two\n```sh\n# no heading\n[no](link)\n```\n`[no](link)` [a](#one-two-1) [b](docs) [c](https://x/y)\n"


def test_links_that_lead_somewhere():
    assert not list(broken_links(ROOT / "README.md", PAGE))


@pytest.mark.parametrize("bad", ["[a](none.md)", "[a](#one-two-2)", "[a](#no-heading)", "[a](docs/../../..)", "[a]: none.md", "![a](docs/none.svg)"])
def test_broken_links_that_are_noticed(bad):
    assert len(list(broken_links(ROOT / "README.md", f"{PAGE}\n{bad}\n"))) == 1


def test_color_schemes():
    assert has_both_schemes("<svg><title>A</title><style>@media (prefers-color-scheme: dark) {}</style></svg>")
    assert not has_both_schemes("<svg><title>A</title><style>text { fill: black; }</style></svg>")
