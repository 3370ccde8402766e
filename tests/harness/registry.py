"""Debian's docker-registry on a free port of loopback."""

import json
import re
import socket
import subprocess

from harness.run import run, until

# user:secret, as htpasswd writes it.
HTPASSWD = "user:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"


class Registry:
    """A registry with its files and its request log in a directory, which must not exist: `closed` demands credentials, `tls` is a directory with
    server.pem and server.key."""

    def __init__(self, folder, closed=False, tls=None):
        self.folder, self.config = folder, folder / "config.yml"
        folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        config = {"version": "0.1", "storage": {"filesystem": {"rootdirectory": str(folder / "data")}}, "http": {"addr": self.address}}
        if closed:
            (folder / "htpasswd").write_text(HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        if tls:
            config["http"]["tls"] = {"certificate": str(tls / "server.pem"), "key": str(tls / "server.key")}
        self.config.write_text(json.dumps(config))
        self.start()

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.config], stdout=log, stderr=subprocess.DEVNULL)
        until(self.listens)

    def listens(self):
        assert self.process.poll() is None, "docker-registry does not start"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def collect_garbage(self):
        self.stop()
        ran = run("docker-registry", "garbage-collect", "--delete-untagged", self.config)
        self.start()
        return ran

    def puts(self):
        """The digests of the blobs that were sent, one for each time."""
        return re.findall(r'"PUT /v2/\S+/blobs/uploads/\S*digest=(sha256(?:%3A|:)[0-9a-f]{64})\S* HTTP/1.1" 201', (self.folder / "log").read_text())

    def blob(self, digest):
        hexadecimal = digest.split(":")[1]
        return self.folder / "data/docker/registry/v2/blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"
