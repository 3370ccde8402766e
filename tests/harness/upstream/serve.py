#!/usr/bin/env python3
"""serve.py OUT --mirrors FILE: serves the upstreams below OUT/site on a port of loopback.

/<host>/<path> is OUT/site/<host>/<path>. FILE gets the mirror of each host, PREFIX=URL, separated by blanks, when the server
listens. OUT/requests.log gets a line for each request: method, path, first byte, status. OUT/faults.json is read at each request:
{"/host/path": {"kind": …}} makes that path fail:

  swap FILE      another file's content     flip            one byte changed       truncate   half of it, as if whole
  cut AFTER      the connection ends after so many bytes; AFTER counts anew in each request
  slow           a little every tenth of a second
  endless        a body that does not end   loop            a redirect to itself   status N   that status
"""

import argparse
import hashlib
import http.server
import json
import os
import pathlib
import threading
import time

CHUNK = 1 << 16
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.first = 0
        fault = self.faults().get(self.path.split("?")[0], {})
        kind = fault.get("kind")
        if kind == "status":
            return self.answer(fault["status"], b"")
        if kind == "loop":
            return self.answer(302, b"", {"Location": self.path})
        if kind == "endless":
            return self.endless()
        if "/v2/" in self.path and self.headers.get("Authorization") != "Bearer test-token":
            host = self.path.split("/")[1]
            challenge = f'Bearer realm="https://auth.{host}/token",service="{host}",scope="repository:pause:pull"'
            return self.answer(401, b"", {"WWW-Authenticate": challenge})
        path = self.file(fault)
        if path is None:
            return self.answer(404, b"not found\n")
        self.send(path, kind, fault)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.first = 0
        fault = self.faults().get(self.path, {})
        if not self.path.endswith("/api/v1/index/retrieve"):
            return self.answer(404, b"not found\n")
        if fault.get("kind") == "swap":
            return self.answer(200, pathlib.Path(fault["file"]).read_bytes())
        index = json.loads((self.server.root / "site/rekor.sigstore.dev/index.json").read_text())
        self.answer(200, json.dumps(index.get(body["hash"], [])).encode())

    def faults(self):
        try:
            return json.loads((self.server.root / "faults.json").read_text())
        except FileNotFoundError:
            return {}

    def file(self, fault):
        if fault.get("kind") == "swap":
            return pathlib.Path(fault["file"])
        path = (self.server.root / "site" / self.path.split("?")[0].lstrip("/")).resolve()
        inside = path.is_relative_to((self.server.root / "site").resolve())
        return path if inside and path.is_file() else None

    def send(self, path, kind, fault):
        """A whole file or the end of one, streamed."""
        size = path.stat().st_size
        if kind == "truncate":
            size //= 2
        status, headers = 200, {"Accept-Ranges": "bytes"}
        if "/manifests/" in self.path:
            document = json.loads(path.read_text())
            headers["Content-Type"] = document["mediaType"]
            headers["Docker-Content-Digest"] = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes="):
            self.first = int(wanted[6:].split("-")[0])
            if self.first >= size:
                return self.answer(416, b"")
            status = 206
            headers["Content-Range"] = f"bytes {self.first}-{size - 1}/{size}"
        left = size - self.first
        self.begin(status, left, headers)
        if self.command == "HEAD":
            return
        if kind == "cut":
            left = min(left, fault["after"])
            self.close_connection = True
        with open(path, "rb") as file:
            file.seek(self.first)
            at = self.first
            while left > 0:
                chunk = bytearray(file.read(min(CHUNK, left)))
                if kind == "flip" and at <= size // 2 < at + len(chunk):
                    chunk[size // 2 - at] ^= 1
                if kind == "slow":
                    time.sleep(0.1)
                self.wfile.write(chunk)
                at, left = at + len(chunk), left - len(chunk)

    def endless(self):
        self.log(200)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b"10000\r\n" + bytes(CHUNK) + b"\r\n")

    def answer(self, status, body, headers=None):
        self.begin(status, len(body), headers or {})
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin(self, status, length, headers):
        self.log(status)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log(self, status):
        with LOCK, open(self.server.root / "requests.log", "a") as log:
            log.write(f"{self.command} {self.path} {self.first} {status}\n")

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients that hang up are part of the tests."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mirrors", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    server = Server(("127.0.0.1", 0), Handler)
    server.root = arguments.out.resolve()
    base = f"http://127.0.0.1:{server.server_port}"
    hosts = sorted(host.name for host in (server.root / "site").iterdir())
    partial = arguments.mirrors.with_suffix(".partial")
    partial.write_text(" ".join(f"https://{host}/={base}/{host}/" for host in hosts))
    os.replace(partial, arguments.mirrors)
    server.serve_forever()


main()
