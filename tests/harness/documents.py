"""The documents of the repository, and their commands.

A command follows `$ `, further lines of it `> `. Of its output, on stdout and stderr together, the words must match; numbers, versions,
digests and addresses may be others. `...` stands for the rest of a line, or on a separate line for any lines. Every command must
succeed. A block that only shows something has another language (`text`, `sh`).
"""

import os
import pathlib
import re
import subprocess

from harness.paths import ROOT
from harness.report import case

# Folders without documents of ours.
NOT_OURS = {".git", "target", "dist", "cache"}
FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[^`\n]*)\n(?P<body>.*?)^(?P=fence)\s*?$\n?", re.MULTILINE | re.DOTALL)
TIMEOUT = 120
# Of a document whose machines are started, under emulation.
BOOT_TIMEOUT = 1200


def documents():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))


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


def run_commands(document, checkout, vmbake, boot=False, **environment):
    own = {"PATH": f"{vmbake.parent}:{os.environ['PATH']}", "HOME": str(checkout.parent), "LC_ALL": "C.UTF-8"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VMBAKE_", "XDG_", "SOURCE_DATE"))}
    for command, output in commands((ROOT / document).read_text(), boot):
        result = subprocess.run(["bash", "-c", command], cwd=checkout, env=kept | own | environment, text=True, timeout=BOOT_TIMEOUT if boot else TIMEOUT,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        good = result.returncode == 0 and matches(output, result.stdout)
        shown = "\n".join(output)
        case(" ".join(command.replace(chr(92) + chr(10), "").split()), good, f"exit status {result.returncode}; printed:\n{result.stdout}shown:\n{shown}")
