"""Comparing two root file systems, path by path."""

import difflib
import hashlib
import os
import re
import stat


def describe_exactly(path):
    """Everything about a path, with times in nanoseconds. Sizes and links of directories depend on the layout of the file system."""
    meta = os.lstat(path)
    found = {**describe(path), "permissions": meta.st_mode, "mtime": meta.st_mtime_ns, "device": meta.st_rdev,
             "attributes": {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}}
    return found if stat.S_ISDIR(meta.st_mode) else {**found, "names": meta.st_nlink, "size": meta.st_size}


def describe(path):
    """Everything about a path but its times."""
    meta = os.lstat(path)
    kind = stat.S_IFMT(meta.st_mode)
    found = {"type": kind, "owner": (meta.st_uid, meta.st_gid)}
    if kind == stat.S_IFLNK:
        found["target"] = os.readlink(path)
        return found
    found["mode"] = oct(stat.S_IMODE(meta.st_mode))
    found["xattrs"] = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    if kind == stat.S_IFREG:
        found["links"] = meta.st_nlink
        with open(path, "rb") as file:
            found["content"] = (meta.st_size, hashlib.file_digest(file, "sha256").hexdigest())
    return found


def paths(root):
    """Every path below root, relative to it."""
    found = {}
    todo = [""]
    while todo:
        directory = todo.pop()
        with os.scandir(root + directory) as entries:
            for entry in entries:
                path = f"{directory}/{entry.name}"
                found[path] = root + path
                if entry.is_dir(follow_symlinks=False):
                    todo.append(path)
    return found


def differences(left, right):
    """(path, property, left, right) of everything that differs; what is missing on a side is None."""
    ours, theirs = paths(left), paths(right)
    for path in sorted(ours.keys() | theirs.keys()):
        if path not in ours or path not in theirs:
            yield path, "missing", path in ours or None, path in theirs or None
            continue
        one, two = describe(ours[path]), describe(theirs[path])
        keys = ["type"] if one["type"] != two["type"] else sorted(one)
        for key in keys:
            if one[key] != two[key]:
                yield path, key, one[key], two[key]


def judge(left, right, allowed, names=("left", "right")):
    """Prints what differs between the trees beyond what is allowed: (path pattern, properties, reason). Returns how many
    differences there are, with lines of `allowed` that nothing needed."""
    used, failures = set(), 0
    for path, key, one, two in differences(left, right):
        match = next((line for line in allowed if re.fullmatch(line[0], path) and key in line[1].split()), None)
        if match:
            used.add(match)
            continue
        failures += 1
        print(f"    {path}: {key}: {names[0]} {one!r}, {names[1]} {two!r}")
        if key == "content" and max(one[0], two[0]) < 1 << 20:
            texts = [open(root + path, "rb").read().decode("utf-8", "replace").splitlines() for root in (left, right)]
            for line, _ in zip(difflib.unified_diff(*texts, *names, n=1, lineterm=""), range(30)):
                print(f"      {line}")
    for line in allowed:
        if line not in used:
            failures += 1
            print(f"    allowed without need: {line[0]} ({line[1]}): {line[2]}")
    return failures
