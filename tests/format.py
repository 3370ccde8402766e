#!/usr/bin/env python3
"""format.py: the format of cases refuses what it does not know, and takes every case that is there. Boots nothing.

Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import pathlib
import sys
import tempfile

import case

GOOD = "about: a\nimage: node\nbudget: 9\nsteps:\n- boot\n- check: {a: 'true'}\n"
# What is wrong: the text that replaces a part of GOOD, and a part of what is said.
WRONG = {
    "unknown key": ("budget: 9", "budget: 9\ncolour: red", "unknown key 'colour'"),
    "missing key": ("budget: 9\n", "", "no 'budget'"),
    "budget in words": ("budget: 9", "budget: nine", "int expected"),
    "budget true": ("budget: 9", "budget: true", "int expected"),
    "firmware": ("budget: 9", "budget: 9\nfirmware: coreboot", "firmware 'coreboot'"),
    "unknown step": ("- boot", "- bot", "unknown step 'bot'"),
    "two steps in one": ("- check:", "- boot:\n  check:", "unknown step"),
    "argument too many": ("- boot", "- boot: now", "takes nothing"),
    "no check": ("- check: {a: 'true'}\n", "", "checks nothing"),
    "empty check": ("{a: 'true'}", "{}", "check is empty"),
    "check that is no script": ("{a: 'true'}", "{a: 1}", "str expected"),
    "check twice in one step": ("{a: 'true'}", "{a: 'true', a: 'false'}", "twice: a"),
    "check twice in two steps": ("{a: 'true'}", "{a: 'true'}\n- silent: {a: 'true'}", "same name: a"),
    "wait for no expression": ("- boot", "- wait: {a: '('}", "wait a:"),
    "put without content": ("- boot", "- put: {/a: {mode: '600'}}", "put /a:"),
    "put with a mode in words": ("- boot", "- put: {/a: {content: a, mode: u+x}}", "mode 'u+x'"),
    "unknown module": ("- boot", "- ask: nobody.knows", "no module"),
    "unknown function": ("- boot", "- ask: cloud.nothing", "no function"),
    "check before boot": ("- boot\n- check: {a: 'true'}", "- check: {a: 'true'}\n- boot", "machine is off"),
    "e2fsck of a machine that is on": ("- check:", "- e2fsck\n- check:", "machine is on"),
    "no YAML": ("- boot", "- {", "while parsing"),
}


def refused(folder, text):
    """What is said against the text of a case."""
    (folder / "a.yaml").write_text(text)
    return loaded("a", folder)


def loaded(name, folder):
    """What is said against a case, or None."""
    try:
        case.load(name, folder)
    except case.Refused as error:
        return str(error)
    return None


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        found = {"a good one": (refused(folder, GOOD), None)}
        found |= {name: (refused(folder, GOOD.replace(old, new)), part) for name, (old, new, part) in WRONG.items()}
    found |= {f"cases/{name}.yaml": (loaded(name, case.FOLDER), None) for name in case.names()}
    for name, (said, part) in found.items():
        ok = said is None if part is None else said is not None and part in said
        failures += not ok
        print(f"{'ok' if ok else 'FAIL'}: {name}" + ("" if ok else f"\n{said}"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
