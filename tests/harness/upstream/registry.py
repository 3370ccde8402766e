"""A registry according to the OCI distribution specification 1.1 with referrers, which requires short-lived tokens and is sometimes overloaded: features that
Debian's docker-registry lacks. All data are in memory. Only requests of vmbake and oras are implemented."""

import base64
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

from harness import web

INDEX = "application/vnd.oci.image.index.v1+json"
# Requests that a token is good for.
USES = 10
PASSWORD = "Basic " + base64.b64encode(b"user:secret").decode()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Registry(web.Server):
    """Its log has a line for each request; `busy` says which of them are refused for now."""

    def __init__(self, closed=False, busy=lambda number: None):
        self.closed, self.busy = closed, busy
        self.blobs, self.manifests, self.tags, self.log = {}, {}, {}, []
        self.tokens, self.scopes, self.lock = {}, set(), threading.Lock()
        super().__init__(Handler)
        self.address = f"127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def handle_request(self):
        server, (path, _, query) = self.server, self.path.partition("?")
        query = urllib.parse.parse_qs(query)
        self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:
            server.log.append(f"{self.command} {self.path}")
            number = len(server.log)
            if path == "/token":
                return self.token(query)
            if server.closed and not self.is_known():
                realm = f'Bearer realm="http://{server.address}/token",service="stand-in",scope="repository:any:pull"'
                return self.answer(401, WWW_Authenticate=realm)
            if refusal := server.busy(number):
                return self.answer(refusal, Retry_After="0")
            for pattern, work in ROUTES:
                if found := re.fullmatch(pattern, path):
                    return work(self, found, query)
            return self.answer(404)

    do_GET = do_HEAD = do_PUT = do_POST = handle_request

    def token(self, query):
        if self.headers.get("Authorization") != PASSWORD:
            return self.answer(401)
        token = f"t{len(self.server.tokens)}"
        self.server.tokens[f"Bearer {token}"] = USES
        self.server.scopes |= set(query.get("scope", []))
        return self.answer(200, json.dumps({"token": token}).encode())

    def is_known(self):
        left = self.server.tokens.get(self.headers.get("Authorization"), 0)
        if left:
            self.server.tokens[self.headers.get("Authorization")] = left - 1
        return left > 0

    def blob(self, found, _):
        content = self.server.blobs.get(found[2])
        return self.answer(404) if content is None else self.answer(200, content, Docker_Content_Digest=found[2])

    def upload(self, found, query):
        if self.command == "POST":
            return self.answer(202, Location=f"/elsewhere/{found[1]}/{len(self.server.log)}?state=x")
        wanted = query["digest"][0]
        if digest(self.content) != wanted:
            return self.answer(400)
        self.server.blobs[wanted] = self.content
        return self.answer(201, Docker_Content_Digest=wanted)

    def manifest(self, found, _):
        server, name = self.server, found[2]
        if self.command != "PUT":
            known = server.manifests.get(server.tags.get(name, name))
            if known is None:
                return self.answer(404)
            return self.answer(200, known[1], Content_Type=known[0], Docker_Content_Digest=digest(known[1]))
        document = json.loads(self.content)
        parts = [document["config"], *document["layers"]] if "config" in document else []
        lost = [part for part in parts if part["digest"] not in server.blobs]
        lost += [part for part in document.get("manifests", []) if part["digest"] not in server.manifests]
        own = digest(self.content)
        if lost or (":" in name and name != own):
            return self.answer(400, json.dumps(lost).encode())
        server.manifests[own] = (self.headers["Content-Type"], self.content)
        if ":" not in name:
            server.tags[name] = own
        subject = {"OCI_Subject": document["subject"]["digest"]} if "subject" in document else {}
        return self.answer(201, Docker_Content_Digest=own, **subject)

    def referrers(self, found, _):
        entries = []
        for own, (media_type, content) in self.server.manifests.items():
            document = json.loads(content)
            if document.get("subject", {}).get("digest") == found[2]:
                entries.append({"mediaType": media_type, "digest": own, "size": len(content), "artifactType": document["artifactType"],
                                "annotations": document.get("annotations", {})})
        content = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
        return self.answer(200, content, Content_Type=INDEX)


ROUTES = [(r"/v2/(.+)/blobs/uploads/", Handler.upload), (r"/elsewhere/(.+)/(\d+)", Handler.upload), (r"/v2/(.+)/blobs/(sha256:\w+)", Handler.blob),
          (r"/v2/(.+)/manifests/([^/]+)", Handler.manifest), (r"/v2/(.+)/referrers/(sha256:\w+)", Handler.referrers)]
