"""The documentation: every relative link must lead to an existing file and heading, and every command in a fenced block of the language `console` must run and
print what the block shows.

Commands run in a temporary folder that looks like the checkout after `make bake`, with the release as `dist`, and a store with the same blobs: what
they write there is gone afterwards. Blocks of the language `console boot` start machines, which takes minutes: only the slow tests run them, with the others of
that document.
"""

import re
import urllib.parse

import pytest

from harness.documents import FENCE, documents, matches, run_commands
from harness.paths import ROOT

LINK = re.compile(r"\[[^]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
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


DOCUMENTS = {str(document.relative_to(ROOT)): document for document in documents()}
WITH_COMMANDS = [name for name, document in DOCUMENTS.items() if "```console" in document.read_text()]


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
