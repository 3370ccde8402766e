"""A server of the cluster for machines of tests: two ports with TLS, for registration and for the agent, that record
connections.

It listens on loopback. A machine in qemu reaches it at ADDRESS by `guests`, also where its network is restricted: for each
connection qemu starts bridge.py.
"""

import pathlib
import socket
import ssl
import threading
import time

ADDRESS = "10.0.2.100"
PORTS = {8992: "registration", 8993: "agent"}
# Where it is after it was started again.
MOVED = {18992: "registration", 18993: "agent"}
KINDS = PORTS | MOVED
# Name of a server of the cluster.
NAMES = ("nstance.podplane.internal", ADDRESS)
# Seconds for a handshake: below emulation each side takes some.
PATIENCE = 60.0


class Connection:
    """One connection: `port` as the machine sees it, `tls` the version or None, `name` what the client asked for (SNI), `client`
    the common name of its certificate, `said` its first bytes, `fault` why it ended early."""

    def __init__(self, port):
        self.port, self.time, self.tls, self.name, self.client, self.said, self.fault = port, time.time(), None, None, None, b"", None

    @property
    def kind(self):
        """`bare` without data, `refused` by a client that does not trust the server, `tls`, or `broken`."""
        if self.tls:
            return "tls"
        if self.fault is None:
            return "bare"
        return "refused" if "alert" in self.fault else "broken"

    def __str__(self):
        words = [KINDS[self.port], self.kind, self.tls, self.name, self.client, self.fault, self.said and ascii(self.said.decode("latin-1"))]
        return " ".join(word for word in words if word)


class Server:
    """Listens until it is closed. `authority` signs its certificate; `folder` is where that is kept."""

    def __init__(self, authority, folder):
        authority.issue("nstance.server", names=NAMES)
        folder = pathlib.Path(folder)
        for name in ("ca.crt", "nstance.server.crt", "nstance.server.key"):
            (folder / name).write_bytes(authority.files[name])
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.load_cert_chain(folder / "nstance.server.crt", folder / "nstance.server.key")
        self.context.load_verify_locations(folder / "ca.crt")
        # Who registers has no certificate yet; an agent that has one shows it.
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.context.sni_callback = self._asked
        self.connections, self.sockets = [], {}
        for port in KINDS:
            server = socket.create_server(("127.0.0.1", 0))
            self.sockets[port] = server
            threading.Thread(target=self._accept, args=(port, server), daemon=True).start()

    def guests(self):
        """Addresses for a machine in qemu: {guest address: host address}."""
        return {f"{ADDRESS}:{port}": f"127.0.0.1:{server.getsockname()[1]}" for port, server in self.sockets.items()}

    def seen(self, since=0):
        """Connections without the first ones: {(purpose of the port, type)}."""
        return {(KINDS[connection.port], connection.kind) for connection in self.connections[since:]}

    def move(self):
        """From now on it is at the other ports alone."""
        self._deaf(*PORTS)

    def close(self):
        self._deaf(*self.sockets)

    def _deaf(self, *ports):
        for server in [self.sockets.pop(port) for port in ports]:
            server.shutdown(socket.SHUT_RDWR)
            server.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def _asked(connection, name, _):
        connection.asked = name

    def _accept(self, port, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Connection(port), connection), daemon=True).start()

    def _serve(self, record, connection):
        """Records a connection once its type is known."""
        with connection:
            connection.settimeout(PATIENCE)
            try:
                if connection.recv(1, socket.MSG_PEEK):
                    self._greet(record, connection)
            # A reset is a bare connection too: configure only checks that the address accepts connections.
            except ConnectionResetError:
                record.fault = None
            except OSError as error:
                record.fault = record.fault or str(error)
            self.connections.append(record)

    def _greet(self, record, connection):
        with self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as talk:
            try:
                talk.do_handshake()
                # In TLS 1.3 the server finishes before the client has verified its certificate: a refusal comes with the first bytes.
                record.said = talk.recv(4096)
                record.tls, record.client = talk.version(), self._common(talk.getpeercert())
                # TLS's closing alert: a connection that only ends could have been cut, and a client would say so.
                talk.unwrap()
            except (ssl.SSLError, OSError) as error:
                record.fault = str(error)
            record.name = getattr(talk, "asked", None)

    @staticmethod
    def _common(certificate):
        pairs = dict(pair for part in (certificate or {}).get("subject", ()) for pair in part)
        return pairs.get("commonName")
