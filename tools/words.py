#!/usr/bin/python3
"""words.py: checks spelling, and that texts use the terms of the field, in tracked files and in the subjects of the last commits.

Runs codespell with the settings in pyproject.toml. Then reports each phrase of PHRASES with its place and the term to write instead. Exit status 1 if it found
one. Texts of others stay as they are: vendored scripts, seeds of the fuzzers, recorded data; and so do files that layers install, as every image has their bytes.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEXTS = {".md", ".py", ".rs", ".service", ".sh", ".snap", ".timer", ".toml", ".yaml", ".yml", ".svg", ""}
OTHERS = re.compile(r"^LICENSE$|/data/|/fuzz/seeds/|^layers/[^/]+/files/|/snippets/|^src/shell/tests/bash/|^tools/words\.py$|^\.git")
SUBJECTS = 20
PHRASES = {
    r"(?<!there )\bis no (?!more|less|such|\w+er\b)[a-z]": "is not a valid, invalid, is not",
    # The account of that name, quoted or an operand, stays.
    r"(?<![\w`\"'=#:])(?<!chown )(?<!passwd )(?<!-u )(?<!\bid )(?<!\d )(?:nobody|somebody|whoever|anybody)\b(?![\w`:\"'-])": "name the actor, or use the passive",
    r"\bbesides?\b": "next to, alongside, in addition to",
    r"\bby hand\b": "manually",
    r"\bhas it otherwise\b": "differs",
    r"\bis to be had\b": "is available",
    r"\bwithout a word\b": "silently",
    r"\bof its own\b": "own, separate, custom",
    r"\b(?:struct|enum|trait|type) (?:Memo|Hops|Paced|Stamp|CarryError|Catalogue|Standing|Wanted|Reach|Spot|Place|Asks)\b": "a name of the field, such as OnceMap, RedirectChain, FileIdentity, ArchiveError, Location, Permissions",
    r"\bfn (?:remark|tell|obtain|bring|settle)\b": "report, emit, fetch, apply",
}


def tracked() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [pathlib.Path(name) for name in listed.split("\0") if name]
    return [path for path in paths if path.suffix in TEXTS and not OTHERS.search(str(path)) and (ROOT / path).is_file()]


def subjects() -> list[str]:
    log = subprocess.run(["git", "log", f"-{SUBJECTS}", "--format=%s"], cwd=ROOT, check=True, capture_output=True, text=True)
    return log.stdout.splitlines()


def phrases(place: str, lines: list[str]) -> int:
    found = 0
    for number, line in enumerate(lines, 1):
        for pattern, instead in PHRASES.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                found += 1
                print(f"{place}:{number}: {match.group()!r}: {instead}")
    return found


def main() -> int:
    files = tracked()
    found = sum(phrases(str(path), (ROOT / path).read_text(errors="replace").splitlines()) for path in files)
    found += phrases("commit", subjects())
    spelled = [path for path in files if path.suffix != ".snap"]
    typos = subprocess.run(["codespell", *map(str, spelled)], cwd=ROOT)
    return 1 if found or typos.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
