#!/usr/bin/env python3
"""faults.py URL [PLAN.json]: a proxy on loopback before the stand-in for AWS at URL, which breaks requests by a plan. Prints `url=http://127.0.0.1:PORT`.

A plan is a list of rules. A rule matches requests by `action`, such as RegisterImage or PutSnapshotBlock, or by `head`, a regular expression for
`METHOD PATH`; it acts on those of them whose numbers, from 1, are in `nth`, or on each n-th by `every`, or on all. `do` says what happens:

    reset     half of the body is passed on, then both connections are reset
    lose      the request is served; then the connection is reset in place of the answer
    hang      nothing is answered for `seconds`; with `served` the request is served before
    slow      the answer is sent in 50 pieces over `seconds`
    status    `status` is answered with the text `body`, and the request is not passed on
    call      `then` is called before the request is passed on, or with `served` in place of the answer; for tests in Python

Only the first rule that acts on a request does. Requests are numbered as they come, so that the same order of requests has the same faults.
"""

import json
import re
import socket
import socketserver
import struct
import sys
import threading
import urllib.parse

from harness.aws import ebs

PIECES = 50
HEAD = 65536


class Rule:
    def __init__(self, do, action=None, head=None, nth=None, every=None, **how):
        self.do, self.action, self.head, self.nth, self.every, self.how = do, action, head, nth, every, how
        self.seen, self.done = 0, 0

    def acts(self, request):
        """Whether it acts on a request, which is counted if it matches."""
        if self.action not in (None, request.action) or not re.search(self.head or "", f"{request.method} {request.path}"):
            return False
        self.seen += 1
        hit = self.seen in self.nth if self.nth else self.seen % (self.every or 1) == 0
        self.done += hit
        return hit


class Request:
    """A request: its raw head, and its action."""

    def __init__(self, head):
        self.head = head
        line, *lines = head.decode("latin-1").split("\r\n")
        self.method, self.path = line.split(" ")[:2]
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        self.length = int(self.headers.get("content-length", 0))
        self.action, _ = ebs.route(self.method, urllib.parse.unquote(self.path.partition("?")[0]))
        self.body = b""

    def complete(self, body):
        self.body = body
        if not self.action and (target := self.headers.get("x-amz-target")):
            self.action = target.rpartition(".")[2]
        if not self.action:
            self.action = dict(urllib.parse.parse_qsl(body.decode(errors="replace"))).get("Action", "")


def reset(connection):
    """Closes a connection so that its peer sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        self.upstream = self.answers = None
        try:
            while self.one():
                pass
        except (OSError, ValueError):
            pass
        finally:
            if self.upstream:
                self.upstream.close()

    def one(self):
        head = self.read_head(self.rfile)
        if not head:
            return False
        request = Request(head)
        request.complete(self.rfile.read(request.length))
        if len(request.body) < request.length:
            return False
        rule = self.server.rule_for(request)
        return getattr(self, f"do_{rule.do}")(request, rule) if rule else self.pass_on(request)

    @staticmethod
    def read_head(file):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline(HEAD)
            if not line or len(head) > HEAD:
                return None
            head += line
        return head

    def connect(self):
        if not self.upstream:
            self.upstream = socket.create_connection(self.server.upstream)
            self.upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.answers = self.upstream.makefile("rb")

    def served(self, request):
        """Has it served, and gives the answer as it came."""
        self.connect()
        self.upstream.sendall(request.head + request.body)
        head = self.read_head(self.answers)
        if not head:
            raise OSError("the stand-in is gone")
        length = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        return head + self.answers.read(int(length[1]) if length else 0)

    def pass_on(self, request):
        self.connection.sendall(self.served(request))
        return True

    # Actions of rules. Each returns whether the connection continues.

    def do_reset(self, request, _rule):
        self.connect()
        self.upstream.sendall(request.head + request.body[:len(request.body) // 2])
        self.answers.close()
        reset(self.upstream)
        self.upstream = None
        reset(self.connection)
        return False

    def do_lose(self, request, _rule):
        self.served(request)
        reset(self.connection)
        return False

    def do_hang(self, request, rule):
        if rule.how.get("served"):
            self.served(request)
        self.connection.settimeout(rule.how.get("seconds", 120))
        # Until the client gives up.
        self.connection.recv(1)
        return False

    def do_slow(self, request, rule):
        answer, stop = self.served(request), threading.Event()
        size = max(1, len(answer) // PIECES)
        for at in range(0, len(answer), size):
            self.connection.sendall(answer[at:at + size])
            stop.wait(rule.how["seconds"] / PIECES)
        return True

    def do_status(self, _request, rule):
        body = rule.how.get("body", "").encode()
        self.connection.sendall(f"HTTP/1.1 {rule.how['status']} Fault\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    def do_call(self, request, rule):
        if not rule.how.get("served"):
            rule.how["then"]()
            return self.pass_on(request)
        self.served(request)
        rule.how["then"]()
        reset(self.connection)
        return False


class Proxy(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size, allow_reuse_address = True, 256, True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Connection)
        parts = urllib.parse.urlsplit(upstream)
        self.upstream, self.lock, self.rules = (parts.hostname, parts.port), threading.Lock(), []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests = 0

    def plan(self, *rules):
        """Replaces the plan; everything is counted anew."""
        with self.lock:
            self.rules, self.requests = [rule if isinstance(rule, Rule) else Rule(**rule) for rule in rules], 0
        return self.rules

    def rule_for(self, request):
        with self.lock:
            self.requests += 1
            # All rules count, the first that acts does.
            acting = [rule for rule in self.rules if rule.acts(request)]
            return acting[0] if acting else None

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def handle_error(self, request, address):
        # Killed clients break their connections.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    proxy = Proxy(sys.argv[1])
    if len(sys.argv) == 3:
        with open(sys.argv[2]) as file:
            proxy.plan(*json.load(file))
    print(f"url={proxy.url}", flush=True)
    proxy.serve_forever()


if __name__ == "__main__":
    main()
