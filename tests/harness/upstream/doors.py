"""Indirect connections to a server: TLS with a test authority, and a counting proxy."""

import datetime
import socket
import socketserver
import ssl
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def pump(source, target):
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
    except OSError:
        pass
    finally:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def join(left, right):
    thread = threading.Thread(target=pump, args=(left, right), daemon=True)
    thread.start()
    pump(right, left)
    thread.join()


class Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.port = self.server_address[1]

    def handle_error(self, *_):
        """Clients that hang up are part of the tests."""


def tls_door(port, folder):
    """A TLS server on localhost before the server at `port`; its authority is folder/ca.pem. Returns its port."""
    now = datetime.datetime.now(datetime.UTC)

    def certify(name, key, issuer, signer, *extensions):
        builder = (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                   .not_valid_after(now + datetime.timedelta(days=10)))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(signer, hashes.SHA256())

    def named(common):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certify(named("test authority"), authority, named("test authority"), authority, x509.BasicConstraints(True, None))
    leaf = certify(named("localhost"), key, named("test authority"), authority, x509.BasicConstraints(False, None),
                   x509.SubjectAlternativeName([x509.DNSName("localhost")]))
    (folder / "ca.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "leaf.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem")

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with context.wrap_socket(self.request, server_side=True) as client, socket.create_connection(("127.0.0.1", port)) as server:
                join(client, server)

    return Listener(Handler).port


class Proxy:
    """A proxy that understands CONNECT; `asked` lists the requested destinations."""

    def __init__(self):
        asked = self.asked = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                target = self.rfile.readline().decode().split(" ")[1]
                while self.rfile.readline().strip():
                    pass
                asked.append(target)
                host, port = target.rsplit(":", 1)
                with socket.create_connection((host, int(port))) as server:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    join(self.connection, server)

        self.port = Listener(Handler).port
