#!/usr/bin/python3
"""workflows.py: checks that workflows pin what they run, and that jobs with write or signing permissions run only released tools. Does not use the network.

Checks .github/workflows and every YAML block with jobs in the documents. Tests its rules first: GOOD must pass, and each fault that WRONG makes in it must be
reported. Prints `ok: NAME` or `FAIL: NAME` for each; exit status 1 if one failed.
"""

import pathlib
import re
import shlex
import sys
import textwrap

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKFLOWS = ROOT / ".github/workflows"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMIT = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
IMAGE = re.compile(r"[\w./:-]+@sha256:[0-9a-f]{64}")
VERSIONED = re.compile(r"uses:\s*(\S+)\s+# v\d")
EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
# GitHub ignores case in expressions. A context as a whole, or by an index, may have anything in it.
SECRET = re.compile(r"\bsecrets\b(?!\.GITHUB_TOKEN\b)", re.IGNORECASE)
TOKEN = re.compile(r"\bsecrets\.GITHUB_TOKEN\b|\bgithub\b(?!\.(?!token\b)\w)", re.IGNORECASE)
SUBSTITUTED = re.compile(r"[$<>]\(")
OPERATOR = re.compile(r"&&|\|\||;;|\|&|&>>?|>&|<&|>>|<<<?|<>|>\||.")
SEPARATORS = {"&&", "||", ";;", "|&", ";", "&", "|", "(", ")"}
ASSIGNMENT = re.compile(r"(\w+)=")
# Variables that decide which programs run.
LOADERS = re.compile(
    r"PATH|ENV|IFS|PS4|SHELLOPTS|BASH\w*|LD_\w+|GIT_\w+|EDITOR|VISUAL|PAGER|BROWSER|GH_(?:EDITOR|PAGER|BROWSER|PATH|CONFIG_DIR)|SSH_ASKPASS|HOME|XDG_\w+",
    re.IGNORECASE,
)
# They run for pull requests of forks, with the permissions of this repository.
EVENTS = {"pull_request_target", "workflow_run"}
# Allowed in a job with permissions: released tools, which read, compare and send files.
ACTIONS = {
    "actions/attest-build-provenance",
    "actions/cache",
    "actions/checkout",
    "actions/download-artifact",
    "actions/upload-artifact",
    "aws-actions/configure-aws-credentials",
    "sigstore/cosign-installer",
}
TOOLS = set("[ cat cmp cosign cp echo exit find gh git jq ls mkdir mv printf sha256sum test true".split())
# In the examples of documents, where vmbake is a released program: also the scripts that the page describes.
RELEASED = TOOLS | {"docker", "vmbake", "./ci/install-vmbake", "./ci/release", "./ci/sign-with-cosign"}
# The program of this repository, which reads public repositories with a token.
OWN_PROGRAM = {"target/release/vmbake"}
# Subcommands of git and gh that run no program which a file or an argument names. Others, and aliases, are refused.
SUBCOMMANDS = {
    "git": set("add commit config diff log push rev-parse status switch tag".split()),
    "gh": {"attestation verify", "pr create", "pr list", "pr view", *(f"release {name}" for name in "create download edit list upload view".split())},
}
# The only options before a subcommand of git, and the only settings that a job may write.
GIT_OPTIONS = ["-c", "credential.helper=!gh auth git-credential"]
GIT_SETTINGS = {"user.email", "user.name"}
# Options and addresses that name a program.
GIT_PROGRAM = re.compile(r"--(?:receive-pack|exec|upload-pack|ext-diff|textconv)\b|\w+::")
KEYWORDS = set("if then else elif fi while until do done ! { } time".split())

GOOD = """
on: {{push: {{tags: ["v*"]}}}}
permissions: {{contents: read}}
jobs:
  build:
    runs-on: ubuntu-latest
    container: debian@sha256:{image}
    steps:
    - uses: actions/checkout@{commit} # v4.2.2
      with: {{persist-credentials: false}}
    - run: make dist
  sign:
    needs: build
    runs-on: ubuntu-latest
    permissions: {{id-token: write}}
    steps:
    - uses: actions/download-artifact@{commit} # v4.3.0
    - run: |
        if test -e a && sha256sum --check SHA256SUMS; then
          cosign sign-blob --yes "$(cat a)"
        fi
""".format(image="0" * 64, commit="0" * 40)
# Faults: a part of GOOD, its replacement, and a part of the message.
WRONG = {
    "action by tag": (f"checkout@{'0' * 40} # v4.2.2", "checkout@v4", "actions/checkout@v4 is not pinned"),
    "action by a short commit": (f"checkout@{'0' * 40}", "checkout@0000000", "is not pinned"),
    "action without its version": (" # v4.2.2", "", "no version"),
    "container by tag": (f"debian@sha256:{'0' * 64}", "debian:13", "debian:13 is not pinned"),
    "image of a container by tag": (f"debian@sha256:{'0' * 64}", "{image: debian}", "debian is not pinned"),
    "service by tag": ("    container:", "    services: {db: {image: postgres}}\n    container:", "postgres is not pinned"),
    "action in a container by tag": (f"actions/checkout@{'0' * 40}", "docker://alpine:3", "is not pinned"),
    "checkout with credentials": ("      with: {persist-credentials: false}\n", "", "persist-credentials"),
    "rights by default": ("permissions: {contents: read}\n", "", "no permissions"),
    "rights for all jobs": ("{contents: read}", "{contents: write}", "make"),
    "all rights": ("{id-token: write}\n    steps:", "write-all\n    steps:\n    - run: cargo build", "cargo"),
    "rights and a build": ("if test", "make\n        if test", "make"),
    "rights and what was built": ("if test", "./vmbake verify\n        if test", "./vmbake"),
    "rights and what was built, by a variable": ("if test", '"./$program" verify\n        if test', "./$program"),
    "rights and a build behind a condition": ("cosign sign", "A=b cargo run; cosign sign", "cargo"),
    "rights and a build behind a pipe": ("cosign sign-blob", "cat a | cargo run; cosign sign-blob", "cargo"),
    "rights and a build in a substitution": ("$(cat a)", "$(cargo run)", "cargo"),
    "rights and a shell": ("cosign sign", "bash -c 'make'; cosign sign", "bash"),
    "rights and a command of find": ("cosign sign", "find . -exec ./a ';'; cosign sign", "find -exec"),
    "rights and another action": ("actions/download-artifact", "other/action", "other/action"),
    "rights and an action of the repository": (f"actions/download-artifact@{'0' * 40} # v4.3.0", "./build", "./build"),
    "rights and a container": ("permissions: {id", f"container: debian@sha256:{'0' * 64}\n    permissions: {{id", "container"),
    "rights and another language": ("    - run: |", "    - shell: python\n      run: |", "python"),
    "rights and an alias of git": ("cosign sign", "git -c alias.x='!make' x; cosign sign", "git -c"),
    "rights and a setting of git": ("cosign sign", "git config alias.x '!make'; cosign sign", "git config alias.x"),
    "rights and another command of git": ("cosign sign", "git submodule foreach make; cosign sign", "git submodule"),
    "rights and a command of git in a variable": ("cosign sign", 'git "$command"; cosign sign', "git $command"),
    "rights and a program of git": ("cosign sign", "git push --receive-pack=./a; cosign sign", "git --receive-pack"),
    "rights and an address that runs": ("cosign sign", "git push ext::./a; cosign sign", "git ext::"),
    "rights and another directory of git": ("cosign sign", "git -C a status; cosign sign", "git -C"),
    "rights and an editor of git": ("cosign sign", "EDITOR=./a git commit; cosign sign", "EDITOR"),
    "rights and an alias of gh": ("cosign sign", "gh alias set x '!make'; cosign sign", "gh alias set"),
    "rights and an extension of gh": ("cosign sign", "if gh extension install a/b; then gh b; fi; cosign sign", "gh b"),
    "a secret and a build": ("- run: make dist", "- run: make dist\n      env: {KEY: '${{ secrets.KEY }}'}", "make"),
    "a token and a build": ("- run: make dist", "- run: make dist\n      env: {GH: '${{ github.token }}'}", "a token"),
    "a token for all steps": ("    container:", "    env: {GH: '${{ secrets.GITHUB_TOKEN }}'}\n    container:", "a token"),
    "a value in a script": ("make dist", "make ${{ github.head_ref }}", "in a script"),
    "a secret by an index": ("- run: make dist", "- run: make dist\n      env: {KEY: \"${{ secrets['KEY'] }}\"}", "make"),
    "all secrets": ("- run: make dist", "- run: make dist\n      env: {KEY: '${{ toJSON(SECRETS) }}'}", "make"),
    "inherited secrets": ("    runs-on: ubuntu-latest\n    container", "    secrets: inherit\n    container", "make"),
    "a token by an index": ("- run: make dist", "- run: make dist\n      env: {GH: \"${{ github['token'] }}\"}", "a token"),
    "a token and a shell": ("- run: make dist", "- run: bash -c make\n      env: {GH: '${{ github.token }}'}", "a token"),
    "a token and an action": ("- run: make dist", f"- uses: a/b@{'0' * 40} # v1\n      env: {{GH: '${{{{ github.token }}}}'}}", "a token"),
    "an action of the repository": ("- run: make dist", "- uses: ./build", "is not pinned"),
    "checkout in other letters": (f"actions/checkout@{'0' * 40} # v4.2.2\n      with: {{persist-credentials: false}}", f"Actions/Checkout@{'0' * 40} # v4.2.2", "persist-credentials"),
    "rights by a default that is empty": ("permissions: {contents: read}\n", "permissions:\n", "not known"),
    "rights and another language for all": ("on: {push", "defaults: {run: {shell: python}}\non: {push", "python"),
    "rights and another language of the job": ("permissions: {id", "defaults: {run: {shell: python}}\n    permissions: {id", "python"),
    "rights and a script before all": ("- run: |", "- env: {BASH_ENV: ./a}\n      run: |", "BASH_ENV"),
    "rights and other programs": ("cosign sign", "PATH=. jq .; cosign sign", "PATH"),
    "rights and other programs in a loop": ("cosign sign", "for PATH in .; do jq .; done; cosign sign", "PATH"),
    "rights and other programs later": ("cosign sign", 'echo a >>"$GITHUB_PATH"; cosign sign', "GITHUB_PATH"),
    "rights and a build deep in a substitution": ("$(cat a)", "$(cat a | tee b; make)", "make"),
    "rights and a build behind a quote": ("cosign sign", "echo '# a'; make; cosign sign", "a quoted #"),
    "rights and a build behind a redirection": ("cosign sign", "echo a;>b make; cosign sign", "runs b"),
    "rights and a build behind a comment": ("        fi", "        fi # a \\\n        make", "make"),
    "rights and a build behind a backslash": ("        fi", "        fi; echo a \\\\\n        make", "make"),
    "changes of strangers": ("on: {push", "on: {pull_request_target: {}, push", "pull_request_target"),
}


def substituted(script: str) -> list[str]:
    """The scripts in substitutions, which quotes may hide. One whose end is in a quote has an open quote itself."""
    found = []
    for match in SUBSTITUTED.finditer(script):
        depth = 1
        for at in range(match.end(), len(script)):
            depth += {"(": 1, ")": -1}.get(script[at], 0)
            if not depth:
                found.append(script[match.end() : at])
                break
        else:
            found.append("a substitution without an end")
    return found


def joined(script: str) -> list[str]:
    """The lines of a script, as the shell joins them: not behind a comment or an escaped backslash."""
    lines, before = [], ""
    for line in script.split("\n"):
        line = before + line
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 and not re.search(r"(^|[\s;&|()])#", line)
        before = line[:-1] if goes_on else ""
        lines += [] if goes_on else [line]
    return lines + ["a line without an end"] * bool(before)


def subcommand(name: str, words: list[str]) -> list[str]:
    """Forbidden commands in a call of git or gh."""
    if name == "git" and words[:2] == GIT_OPTIONS:
        words = words[2:]
    allowed = SUBCOMMANDS[name]
    length = 2 if name == "gh" else 1
    found = [] if " ".join(words[:length]) in allowed else [" ".join([name, *words[:length]])]
    if name == "git" and words[:1] == ["config"] and (len(words) != 3 or words[1] not in GIT_SETTINGS):
        found.append(" ".join([name, *words[:2]]))
    if name == "git":
        found += [f"git {match[0]}" for word in words if (match := GIT_PROGRAM.match(word))]
    return found


def commands(script: str) -> list[str]:
    """The command names in a script. Unsupported syntax counts as one."""
    found = [name for inner in substituted(script) for name in commands(inner)]
    for line in joined(script):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        begins, loop, last = True, False, ""
        calls: list[tuple[str, list[str]]] = []
        try:
            words = list(lexer)
        except ValueError:
            words = ["a quote that goes on in the next line"]
        if re.search(r"""['"\\]#""", line):
            words = ["a quoted #"]
        for word in words:
            if word.startswith("#"):
                break
            if set(word) <= set("();<>|&"):
                begins, loop = (True, False) if SEPARATORS & set(OPERATOR.findall(word)) else (begins, loop)
            elif not begins and not loop and last in SUBCOMMANDS:
                calls[-1][1].append(word)
            elif last == "find" and word in ("-exec", "-execdir", "-ok", "-okdir", "-delete") or (last, word) == ("printf", "-v"):
                found.append(f"{last} {word}")
            elif loop and LOADERS.fullmatch(word):
                found.append(f"for {word}")
            elif not begins or loop:
                continue
            elif word == "for":
                loop = True
            elif word.startswith("-"):
                # A test of find behind a quoted bracket.
                begins = False
            elif word not in KEYWORDS and (not (assigned := ASSIGNMENT.match(word)) or LOADERS.fullmatch(assigned[1])):
                found.append(word)
                begins, last = False, word
                calls += [(word, [])] if word in SUBCOMMANDS else []
        found += [fault for name, arguments in calls for fault in subcommand(name, arguments)]
    if "`" in re.sub(r"(?<!\\)\\`", "", script):
        found.append("`")
    return found


def check(text: str, document: dict, tools: set[str]) -> list[str]:
    faults = []
    on = document.get("on", document.get(True)) or {}
    faults += [f"{event} runs with the rights of this repository" for event in EVENTS & set([on] if isinstance(on, str) else on)]
    if "permissions" not in document:
        faults.append("no permissions: the repository's settings would decide")
    for name, job in document["jobs"].items():
        faults += [f"{name}: {fault}" for fault in check_job(text, document, job, tools)]
    return faults


def check_job(text: str, document: dict, job: dict, tools: set[str]) -> list[str]:
    faults = []
    rights = job.get("permissions", document.get("permissions", {}))
    if rights != "write-all" and rights != "read-all" and not isinstance(rights, dict):
        faults.append(f"permissions: {rights} are not known")
    can_write = rights == "write-all" or isinstance(rights, dict) and bool(set(rights.values()) - {"read", "none"})
    can_write = can_write or "secrets" in job or has(SECRET, job) or has(SECRET, document.get("env"))
    places = [job.get("container"), *(job.get("services") or {}).values()]
    for place in filter(None, places):
        image = place.get("image", "") if isinstance(place, dict) else place
        if not IMAGE.fullmatch(image):
            faults.append(f"{image} is not pinned by digest")
    if can_write and any(places):
        faults.append("can write, and runs in a container")
    if has(TOKEN, job.get("env")) or has(TOKEN, document.get("env")):
        faults.append("a token for all steps")
    shells = [(place.get("defaults") or {}).get("run", {}).get("shell") for place in (job, document)]
    shell = next(filter(None, shells), "bash")
    for step in [job] if "uses" in job else job["steps"]:
        faults += check_uses(text, step, can_write) if "uses" in step else check_run(step, can_write, tools, shell)
    if can_write:
        names = [name for place in (document, job, *job.get("steps", [])) for name in place.get("env") or {}]
        faults += [f"can write, and sets {name}" for name in names if LOADERS.fullmatch(name)]
    return faults


def has(pattern: re.Pattern, value: object) -> bool:
    """Whether an expression in a value matches."""
    return any(pattern.search(expression) for expression in EXPRESSION.findall(str(value)))


def check_uses(text: str, step: dict, can_write: bool) -> list[str]:
    uses, faults = step["uses"], []
    # Workflows are checked, other actions of the repository are not.
    is_own = uses.startswith("./.github/workflows/")
    if uses.startswith("docker://"):
        pinned = bool(IMAGE.fullmatch(uses.removeprefix("docker://")))
    else:
        pinned = is_own or bool(COMMIT.fullmatch(uses))
        if pinned and not is_own and uses not in VERSIONED.findall(text):
            faults.append(f"{uses}: no version next to the commit")
    if not pinned:
        faults.append(f"{uses} is not pinned by digest")
    name = uses.split("@")[0].lower()
    if can_write and name not in ACTIONS:
        faults.append(f"can write, and runs {name}")
    if name == "actions/checkout" and (step.get("with") or {}).get("persist-credentials") is not False:
        faults.append("actions/checkout without persist-credentials: false")
    if has(TOKEN, step.get("env")) and name not in ACTIONS:
        faults.append(f"a token, and runs {name}")
    return faults


def check_run(step: dict, can_write: bool, tools: set[str], shell: str) -> list[str]:
    script, faults = step["run"], []
    if "${{" in script:
        faults.append("a value in a script: give it by env")
        script = re.sub(r"\$\{\{.*?\}\}", "x", script)
    called = commands(script)
    shell = step.get("shell", shell)
    if can_write:
        faults += [f"can write, and runs {name}" for name in called if name not in tools]
        faults += [f"can write, and runs {shell}"] if shell != "bash" else []
        faults += [f"can write, and sets {name}" for name in re.findall(r"GITHUB_(?:PATH|ENV)\b", script)]
    if has(TOKEN, step.get("env")):
        faults += [f"a token, and runs {name}" for name in called if name not in tools | OWN_PROGRAM]
    return faults


def workflows():
    """All workflows: a name, the text, what it says, and what its jobs with rights may run."""
    for path in sorted(WORKFLOWS.glob("*.y*ml")):
        yield str(path.relative_to(ROOT)), path.read_text(), TOOLS
    for folder in ("docs", "examples", "layers", "."):
        pages = (ROOT / folder).glob("*.md") if folder == "." else (ROOT / folder).rglob("*.md")
        for path in sorted(pages):
            for number, match in enumerate(BLOCK.finditer(path.read_text()), 1):
                yield f"{path.relative_to(ROOT)}, block {number}", textwrap.dedent(match[1]), RELEASED


def parsed(text: str) -> dict | None:
    """A workflow, or a part with jobs alone; None for other YAML."""
    document = yaml.safe_load(text)
    if not isinstance(document, dict) or "jobs" in document:
        return document if isinstance(document, dict) else None
    jobs = {name: job for name, job in document.items() if isinstance(job, dict) and "runs-on" in job}
    return {"permissions": {}, "jobs": jobs} if jobs else None


def main() -> None:
    failed = False
    cases = {"workflow without a fault": (check(GOOD, yaml.safe_load(GOOD), TOOLS), None)}
    for name, (part, other, said) in WRONG.items():
        assert part in GOOD, name
        text = GOOD.replace(part, other, 1)
        cases[name] = (check(text, yaml.safe_load(text), TOOLS), said)
    for name, text, tools in workflows():
        if document := parsed(text):
            cases[name] = (check(text, document, tools), None)
    for name, (faults, said) in cases.items():
        is_right = any(said in fault for fault in faults) if said else not faults
        failed |= not is_right
        print(f"ok: {name}" if is_right else f"FAIL: {name}: {'; '.join(faults) or 'nothing was noticed'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
