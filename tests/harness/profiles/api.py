"""A fake API server: records requests of machines, and gives the responses of a cluster.

It listens on loopback with a certificate of an authority made for it. A machine in qemu reaches it at ADDRESS, also where its network leads nowhere else: for
each connection qemu starts bridge.py.
"""

import base64
import datetime
import http.server
import ipaddress
import json
import ssl
import time
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness import web

ADDRESS, PORT = "10.0.2.100", 6443
SERVER = f"https://{ADDRESS}:{PORT}"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SECRETS = "/api/v1/namespaces/cloud-init-settings/secrets/"
# Of no use anywhere else.
BOOTSTRAP_TOKEN, OSM_TOKEN = "abcdef.0123456789abcdef", "a-token-that-reads-secrets"


class Authority:
    """A certificate authority, as strict clients want it: with the usages of keys, and with names of keys."""

    def __init__(self, name):
        self.key, self.name = ec.generate_private_key(ec.SECP256R1()), _named(name)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self.certificate = self._sign(self.name, self.key.public_key(), (x509.BasicConstraints(ca=True, path_length=None), True), (usage, True))
        self.pem = _pem(self.certificate)

    def issue(self, folder, *names):
        """A certificate for these hosts and its key, as a file for each; their paths."""
        key, hosts = ec.generate_private_key(ec.SECP256R1()), [_host(name) for name in names]
        use = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
        certificate = self._sign(_named(names[0]), key.public_key(), (x509.SubjectAlternativeName(hosts), False), (use, False))
        paths = folder / f"{names[0]}.crt", folder / f"{names[0]}.key"
        paths[0].write_text(_pem(certificate))
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return paths

    def _sign(self, subject, public, *extensions):
        start = datetime.datetime(2026, 1, 1)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(public).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(start).not_valid_after(start + datetime.timedelta(days=3650))
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, critical=is_critical)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        return builder.sign(self.key, hashes.SHA256())


class Request(NamedTuple):
    """Requests and responses."""
    method: str
    path: str
    token: str
    body: dict
    status: int
    time: float


class Server(web.Owned):
    """Listens until it is closed. `secrets` are those that a machine may fetch: {name: {key: text}}."""

    address = f"{ADDRESS}:{PORT}"

    def __init__(self, folder, secrets=()):
        self.authority, self.requests, self.secrets = Authority("kubernetes"), [], dict(secrets)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*self.authority.issue(folder, ADDRESS))
        self.listen(_Handler)

    def kubeconfig(self):
        """Initial state of a kubelet."""
        authority = base64.b64encode(self.authority.pem.encode()).decode()
        return (f"apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    certificate-authority-data: {authority}\n    server: {SERVER}\n"
                f"users:\n- name: bootstrap\n  user:\n    token: {BOOTSTRAP_TOKEN}\ncontexts:\n- name: c\n  context:\n    cluster: c\n    user: bootstrap\n"
                "current-context: c\n")

    def signing_requests(self):
        return [request for request in self.requests if request.path == SIGNING]

    def answer(self, method, path, token, body):
        """Status and document."""
        if (method, path) == ("POST", SIGNING):
            if token != BOOTSTRAP_TOKEN:
                return 401, {"kind": "Status", "code": 401}
            return 201, body | {"metadata": {"name": "node-csr-one"}, "status": {}}
        name = path.removeprefix(SECRETS)
        if method == "GET" and token == OSM_TOKEN and name in self.secrets:
            data = {key: base64.b64encode(text.encode()).decode() for key, text in self.secrets[name].items()}
            return 200, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        return 403, {"kind": "Status", "code": 403}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        # In the thread of this connection: a slow TLS handshake does not delay other clients.
        self.request = self.server.owner.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        document = json.loads(body) if body else {}
        status, answer = self.server.owner.answer(self.command, self.path, token, document)
        self.server.owner.requests.append(Request(self.command, self.path, token, document, status, time.time()))
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

    def log_message(self, *_):
        pass


def _named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
