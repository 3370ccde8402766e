"""The format of cases refuses unknown keys, and accepts every existing case. Boots nothing."""

import case
import pytest

GOOD = "about: a\nimage: node\nbudget: 9\nsteps:\n- boot\n- check: {a: 'true'}\n"
# Faults: a part of GOOD, its replacement, and a part of the error.
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
    "check that is not a script": ("{a: 'true'}", "{a: 1}", "str expected"),
    "check twice in one step": ("{a: 'true'}", "{a: 'true', a: 'false'}", "twice: a"),
    "check twice in two steps": ("{a: 'true'}", "{a: 'true'}\n- silent: {a: 'true'}", "same name: a"),
    "wait for no expression": ("- boot", "- wait: {a: '('}", "wait a:"),
    "put without content": ("- boot", "- put: {/a: {mode: '600'}}", "put /a:"),
    "put with a mode in words": ("- boot", "- put: {/a: {content: a, mode: u+x}}", "mode 'u+x'"),
    "unknown module": ("- boot", "- ask: unknown.check", "no module"),
    "unknown function": ("- boot", "- ask: cloud.nothing", "no function"),
    "check before boot": ("- boot\n- check: {a: 'true'}", "- check: {a: 'true'}\n- boot", "machine is off"),
    "e2fsck of a machine that is on": ("- check:", "- e2fsck\n- check:", "machine is on"),
    "no YAML": ("- boot", "- {", "while parsing"),
}


def test_good_case(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD)
    case.load("a", tmp_path)


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_refused(tmp_path, old, new, said):
    (tmp_path / "a.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(case.Refused) as refused:
        case.load("a", tmp_path)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", case.names())
def test_case_is_accepted(name):
    case.load(name)
