"""A proxy for machines that install themselves: the Debian archive as configured on the host, and release sites served from a directory.

A machine reaches it at ADDRESS by `guests`, and trusts its certificates by `authority`. Whatever else is asked for is refused, and written down.
"""

import http.server
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import web
from harness.profiles.api import Authority

ADDRESS, PORT = "10.0.2.101", 3128
URL = f"http://{ADDRESS}:{PORT}"


def archives():
    """Addresses of the Debian archive, by apt of this host."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(sorted(set(said.split())))


class Proxy(web.Owned):
    """`sites` has a folder for each host of a release site."""

    address = f"{ADDRESS}:{PORT}"

    def __init__(self, folder, sites):
        self.authority, self.folder, self.sites, self.archives = Authority("proxy"), folder, sites, archives()
        self.served, self.refused, self.waited, self.contexts, self.lock = [], [], 0.0, {}, threading.Lock()
        self.listen(_Handler)

    def context(self, host):
        """Listing of a release site."""
        with self.lock:
            if host not in self.contexts:
                self.contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.contexts[host].load_cert_chain(*self.authority.issue(self.folder, host))
            return self.contexts[host]

    def upstream(self, url):
        """Status and content from the archive, and how long that took."""
        start = time.monotonic()
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, b""
        finally:
            with self.lock:
                self.waited += time.monotonic() - start

    def site(self, host, path):
        file = (self.sites / host / path.lstrip("/")).resolve()
        if file.is_relative_to(self.sites.resolve()) and file.is_file():
            return 200, file.read_bytes()
        return 404, b""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tunnel = None

    def do_CONNECT(self):
        owner, host = self.server.owner, self.path.rpartition(":")[0]
        if not (owner.sites / host).is_dir():
            owner.refused.append(self.path)
            return self._answer(403, b"")
        self.send_response(200)
        self.end_headers()
        # What follows in this connection is for the site.
        self.connection = owner.context(host).wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile, self.tunnel = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0), host
        self.close_connection = False

    def do_GET(self):
        owner = self.server.owner
        url = f"https://{self.tunnel}{self.path}" if self.tunnel else self.path
        if self.tunnel:
            status, content = owner.site(self.tunnel, self.path)
        elif url.startswith(owner.archives):
            status, content = owner.upstream(url)
        else:
            owner.refused.append(url)
            status, content = 403, b""
        owner.served.append((url, status, len(content)))
        self._answer(status, content)

    def _answer(self, status, content):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass
