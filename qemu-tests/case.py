"""Cases as data: a file cases/NAME.yaml in, a completely checked Case out, before any machine starts.

README.md describes the format. Unknown keys are errors: a misspelled key must not be a check that never runs.
"""

import importlib
import re
from typing import NamedTuple

import yaml

from harness.paths import CASES, HARNESS

FOLDER = CASES
FIRMWARES = ("bios", "uefi", "direct")
# Keys of a case: type and default; keys without default are required.
KEYS = {
    "about": (str,), "image": (str,), "budget": (int,), "steps": (list,), "arch": (str, "amd64"), "firmware": (str, "bios"),
    "size": (str, "+2G"), "memory": (str, "1536M"), "cpus": (int, 1), "user-data": (str, None), "settings": (dict, {}), "quick": (bool, False),
}
# Steps: the type of their argument, or None.
STEPS = {
    "lint": None, "boot": None, "booted": None, "poweroff": None, "reboot": None, "kill": None, "off": None, "e2fsck": None, "dpkg-verify": None,
    "wait": dict, "check": dict, "silent": dict, "put": dict, "ask": list,
}
# Of checks whose step is called otherwise.
NAMES = {"dpkg-verify": "dpkg --verify"}
# The power state that steps require, and the one after them. Unknown after `ask`.
NEEDS = {**dict.fromkeys(("booted", "wait", "check", "silent", "put", "reboot", "poweroff", "kill", "off"), "on"),
         **dict.fromkeys(("boot", "e2fsck", "dpkg-verify"), "off")}
LEAVES = {"boot": "on", "poweroff": "off", "kill": "off", "off": "off", "ask": None}
FILE = {"content": str, "mode": str, "owner": str}


class Refused(Exception):
    """A case that says something that is not understood."""


class Case(NamedTuple):
    name: str
    values: dict
    steps: list  # (word, argument)

    @property
    def budget(self):
        return self.values["budget"]

    def checks(self):
        """The checks that are known before the case runs; `ask` adds more."""
        for word, argument in self.steps:
            if word in ("lint", "e2fsck", "booted", "dpkg-verify"):
                yield NAMES.get(word, word)
            if word in ("wait", "check", "silent"):
                yield from argument


class Loader(yaml.SafeLoader):
    """Refuses a duplicate key, of which YAML would take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise Refused(f"line {node.start_mark.line + 1}: twice: {', '.join(sorted(twice))}")
        return super().construct_mapping(node, deep)


def names():
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name, folder=FOLDER):
    try:
        return _case(name, yaml.load((folder / f"{name}.yaml").read_text(), Loader))
    except (Refused, yaml.YAMLError) as error:
        raise Refused(f"{folder.name}/{name}.yaml: {error}") from error


def function(name):
    """The Python function that a case calls `module.function`, of a module of the harness."""
    module, _, last = name.rpartition(".")
    if not (HARNESS / f"{module}.py").is_file():
        raise Refused(f"ask: no module for {name!r}")
    found = getattr(importlib.import_module(f"harness.{module}"), last, None)
    if not callable(found):
        raise Refused(f"ask: no function {name!r}")
    return found


def _case(name, content):
    _typed("case", content, dict)
    unknown, missing = set(content) - set(KEYS), {key for key, kind in KEYS.items() if len(kind) == 1} - set(content)
    if unknown or missing:
        raise Refused("; ".join([*(f"unknown key {key!r}" for key in sorted(unknown)), *(f"no {key!r}" for key in sorted(missing))]))
    values = {key: content.get(key, kind[-1]) for key, kind in KEYS.items()}
    for key, value in content.items():
        _typed(key, value, KEYS[key][0])
    if values["firmware"] not in FIRMWARES:
        raise Refused(f"firmware {values['firmware']!r} is none of {', '.join(FIRMWARES)}")
    case = Case(name, values, [_step(step) for step in values.pop("steps")])
    _powered(case.steps)
    checks = list(case.checks())
    twice = sorted({check for check in checks if checks.count(check) > 1})
    if twice:
        raise Refused(f"checks of the same name: {', '.join(twice)}")
    if not checks and not any(word == "ask" for word, _ in case.steps):
        raise Refused("it checks nothing")
    return case


def _powered(steps):
    power = "off"
    for word, _ in steps:
        if power and NEEDS.get(word, power) != power:
            raise Refused(f"{word}: the machine is {power} then")
        power = LEAVES.get(word, power)


def _step(step):
    word, argument = (step, None) if isinstance(step, str) else next(iter(step.items())) if isinstance(step, dict) and len(step) == 1 else (None, None)
    if word not in STEPS:
        raise Refused(f"unknown step {step!r}")
    if word == "ask" and isinstance(argument, str):
        argument = [argument]
    if STEPS[word] is None and argument is not None:
        raise Refused(f"{word} takes nothing, not {argument!r}")
    if STEPS[word]:
        _typed(word, argument, STEPS[word])
        if not argument:
            raise Refused(f"{word} is empty")
    if word in ("check", "silent", "wait"):
        for key, value in argument.items():
            _typed(f"{word} {key}", value, str)
    if word == "wait":
        _compiled(argument)
    if word == "ask":
        argument = [(name, function(name)) for name in argument]
    if word == "put":
        argument = {path: _file(path, value) for path, value in argument.items()}
    return word, argument


def _file(path, value):
    """{content, mode, owner} of a file; its content alone will do."""
    value = {"content": value} if isinstance(value, str) else value
    _typed(f"put {path}", value, dict)
    if set(value) - set(FILE) or "content" not in value:
        raise Refused(f"put {path}: {', '.join(FILE)}, not {', '.join(map(str, value))}")
    for key, text in value.items():
        _typed(f"put {path}: {key}", text, str)
    if not re.fullmatch("[0-7]{3,4}", value.get("mode", "644")):
        raise Refused(f"put {path}: mode {value['mode']!r}")
    return {"content": value["content"].encode(), "mode": int(value.get("mode", "644"), 8), "owner": value.get("owner", "root:root")}


def _compiled(patterns):
    for name, pattern in patterns.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise Refused(f"wait {name}: {error}") from error


def _typed(what, value, kind):
    # True is an int only in Python.
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise Refused(f"{what}: {kind.__name__} expected, not {value!r}")
