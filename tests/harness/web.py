"""HTTP servers on loopback, which answer in threads until they are closed."""

import functools
import http.server
import threading


class Server(http.server.ThreadingHTTPServer):
    """Listens on a free port; handlers find it as their `server`."""

    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Clients that hang up, or do not trust the server, are part of the tests."""

    def close(self):
        self.shutdown()
        self.server_close()

    def __exit__(self, *_):
        self.close()


class Owned:
    """Owner of a server, whose handlers find it as `server.owner`. ADDRESS and PORT are those at which a machine in qemu finds it."""

    address: str

    def listen(self, handler):
        self.http = Server(handler)
        self.http.owner = self

    def guests(self):
        """Where a machine in qemu finds it: {address for it: address of the host}."""
        return {self.address: f"127.0.0.1:{self.http.server_port}"}

    def close(self):
        self.http.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Logs of clients are enough."""


def files(folder):
    """A server of the files of a folder."""
    return Server(functools.partial(Files, directory=folder))
