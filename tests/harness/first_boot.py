"""A second implementation, with Python and Jinja, of the files that a bake writes from `first_boot` of layer.json."""

import json
import os

import jinja2


def write(layers, root):
    """Writes the defaults of mutable variables, and the files that say `bake`, below root."""
    parts = [json.loads(path.read_text()).get("first_boot", {}) for path in sorted(layers.glob("*/layer.json"))]
    variables = {name: variable for part in parts for name, variable in part.get("variables", {}).items()}
    [defaults] = [part["inputs"]["defaults"] for part in parts if "inputs" in part]
    mutable = sorted(name for name, variable in variables.items() if variable.get("mutable") and not variable.get("unlisted"))
    place(root, defaults, "".join(f"{name}={quoted(variables[name].get('default', ''))}\n" for name in mutable), 0o644)
    values = {name: variable.get("default", "") for name, variable in variables.items()}
    for rule in (rule for part in parts for rule in part.get("files", []) if rule.get("bake")):
        template = rule["content"]["template"]
        text = (root / template["file"].lstrip("/")).read_text()
        place(root, rule["path"], rendered(text, template["format"], {**values, **template.get("with", {})}), int(rule["mode"], 8))


def quoted(value):
    return "'" + value.replace("'", "'\"'\"'") + "'"


def rendered(text, notation, values):
    finalize = (lambda value: json.dumps(value, ensure_ascii=False)) if notation == "json" else None
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
                                     undefined=jinja2.StrictUndefined, finalize=finalize)
    environment.filters["split"] = lambda text, by: [part.strip() for part in text.split(by) if part.strip()]
    return environment.from_string(text).render(values)


def place(root, path, text, mode):
    """A file of root, in a directory that everybody may enter."""
    path = root / path.lstrip("/")
    if not path.parent.exists():
        path.parent.mkdir(mode=0o755, parents=True)
    path.write_text(text)
    os.chmod(path, mode)
