#!/usr/bin/env python3
"""archive_mirror.py MANIFEST STORE FOLDER: lays out below FOLDER what MANIFEST pins, at HOST/PATH of its addresses, as links into STORE: what the
archive has, and no other files. A server of it replaces the archive by `--mirror https://HOST/=http://ADDRESS/HOST/`.
"""

import functools
import http.server
import json
import os
import pathlib
import sys
import urllib.parse

from harness import web


def lay_out(manifest, store, folder):
    content = json.loads(pathlib.Path(manifest).read_text())["vmconfig"]
    wanted = {entry["url"]: entry["digest"] for entry in content["dependencies"].values()}
    wanted |= {entry["url"]: digest for digest, entry in content["evidence"].items()}
    for url, digest in wanted.items():
        parts = urllib.parse.urlsplit(url)
        path = pathlib.Path(folder, parts.netloc, parts.path.lstrip("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(pathlib.Path(store, "blobs", *digest.split(":")).resolve(), path)
    return len(wanted)


class Mirror(web.Server):
    """Serves a directory on loopback, and counts requests."""

    def __init__(self, folder):
        self.asked = []
        super().__init__(functools.partial(Handler, directory=folder))
        self.options = []
        for host in sorted(pathlib.Path(folder).iterdir()):
            self.options += ["--mirror", f"https://{host.name}/=http://127.0.0.1:{self.server_port}/{host.name}/"]


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.asked.append(self.path)


if __name__ == "__main__":
    lay_out(*sys.argv[1:])
