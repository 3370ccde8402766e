"""A cluster of one machine, for life.py: its user data, its certificates, and the expected arguments of its services.

The expectations are written manually from the projects' documentation, and share nothing with the layers.
"""

import base64
import datetime
import ipaddress
import json

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import NameOID

from harness.machine import ADDRESS, ADDRESS6

PORTS = (8992, 8993)
# Where the servers are after they were started again.
MOVED = (18992, 18993)
ADMIN = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJkL5Q0n1ccS0S6mDeuq2HkJ0W1FWq2Oe4C5rMPkq9aB admin@example.org"
CRT, PUB, KEY = "/opt/crt", "/opt/pub", "/opt/key"

# Services by the required action after a delivery.
RECEIVERS = ["fluent-bit.service", "zot.service", "kubelet.service"]
PLANE = ["netsy.service", "kube-apiserver.service", "kube-controller-manager.service", "kube-scheduler.service"]
UNTOUCHED = ["containerd.service", "nstance-agent.service", "first-boot-env.service"]


def environment(values):
    quoted = {name: value.replace("'", "'\"'\"'") for name, value in values.items()}
    return "".join(f"{name}='{value}'\n" for name, value in quoted.items())


def delivered(values):
    """A file as the server delivers it: sorted, without quotes, and without a line end at its end."""
    return "\n".join(f"{name}={value}" for name, value in sorted(values.items()))


class Authority:
    """A certificate authority with certificates for every service, as PEM by file name."""

    def __init__(self):
        self.key, self.name = ec.generate_private_key(ec.SECP256R1()), self._name("blue")
        self.certificate = self._sign(self.name, self.key.public_key(), authority=True)
        self.files = {"ca.crt": self._pem(self.certificate), "ca.pub": self._public(self.key)}
        accounts = ec.generate_private_key(ec.SECP256R1())
        self.files |= {"service-accounts.pub": self._public(accounts), "service-accounts.key": self._private(accounts)}

    def issue(self, *certificates, names=()):
        """Certificates with their keys; `names` are those of the host that shows them."""
        for name in certificates:
            key = ec.generate_private_key(ec.SECP256R1())
            self.files[f"{name}.crt"] = self._pem(self._sign(self._name(name), key.public_key(), names))
            self.files[f"{name}.key"] = self._private(key)

    def token(self, subject):
        """The registration token of a machine: a signed JWT (ES256)."""
        parts = [json.dumps(part).encode() for part in ({"alg": "ES256", "typ": "JWT"}, {"sub": subject, "exp": 2082758400})]
        text = b".".join(map(self._url, parts))
        r, s = utils.decode_dss_signature(self.key.sign(text, ec.ECDSA(hashes.SHA256())))
        return (text + b"." + self._url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()

    @staticmethod
    def _url(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    @staticmethod
    def _name(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def _sign(self, subject, public, names=(), authority=False):
        start = datetime.datetime(2026, 1, 1)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(public)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start)
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([self._general(name) for name in names]), critical=False)
        return builder.not_valid_after(start + datetime.timedelta(days=3650)).sign(self.key, hashes.SHA256())

    @staticmethod
    def _general(name):
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    @staticmethod
    def _pem(certificate):
        return certificate.public_bytes(serialization.Encoding.PEM)

    @staticmethod
    def _public(key):
        return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    @staticmethod
    def _private(key):
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def bare(authority, **more):
    """User data as written by the command line of a cluster: the machine's identity and its servers. Everything else is delivered."""
    return {
        "IMMUTABLE_SSH_AUTHORIZED_KEYS": "", "INSTANCE_ID": "one", "CLUSTER_ID": "blue", "PROVIDER_KIND": "local",
        "PROVIDER_REGION": "home", "PROVIDER_ZONE": "home-1", "PROVIDER_INSTANCE_TYPE": "small", "AWS_ACCOUNT_ID": "", "GOOGLE_PROJECT_ID": "",
        "NSTANCE_CA_CERT": base64.b64encode(authority.files["ca.crt"]).decode(),
        "NSTANCE_SERVER_REGISTRATION_ADDR": f"{ADDRESS}:{PORTS[0]}", "NSTANCE_SERVER_AGENT_ADDR": f"[{ADDRESS6}]:{PORTS[1]}", **more,
    }


def delivery(**more):
    """The settings that the command line has delivered: every one of them, in its order; those that have no value are empty."""
    return {
        "SSH_AUTHORIZED_KEYS": "",
        "TELEMETRY_ENABLED": "true", "TELEMETRY_LOG_CLOUDINIT": "true", "TELEMETRY_LOG_SERVICES": "ssh,containerd,kubelet",
        "TELEMETRY_OTLP_ENDPOINT": "", "TELEMETRY_S3_BUCKET": "logs", "TELEMETRY_S3_REGION": "home", "TELEMETRY_S3_ENDPOINT": "http://10.9.8.9:9000",
        "TELEMETRY_S3_ASSUME_ROLE": "", "TELEMETRY_S3_ACCESS_KEY_ID": "writer", "TELEMETRY_S3_SECRET_ACCESS_KEY": "secret/3",
        "OIDC_ISSUER": "https://login.blue.example", "OIDC_CA_CERT": "", "OIDC_CA_FILE": "", "OIDC_SIGNING_ALGS": "",
        "KUBE_API_ETCD_SERVERS": "https://127.0.0.1:2378", "KUBE_API_PUBLIC_HOSTNAME": "api.blue.example",
        "KUBE_API_INTERNAL_LB_HOSTNAME": "lb.blue.example", "KUBE_LOG_LEVEL": "",
        "KUBE_SERVICE_ACCOUNT_ISSUER": "https://api.blue.example:6443", "KUBE_CLUSTER_CIDR": "10.64.0.0/10,fd64::/48",
        "KUBE_NODE_CIDR_MASK_SIZE_IPV4": "25", "KUBE_NODE_CIDR_MASK_SIZE_IPV6": "", "KUBE_SERVICE_CLUSTER_IP_RANGE": "10.18.0.0/15,fdc6::/108",
        "KUBE_CLUSTER_DNS": "10.19.255.254,fdc6::ffff", "AWS_S3_USE_PATH_STYLE": "",
        "NETSY_BUCKET": "state", "NETSY_REGION": "home", "NETSY_ENDPOINT": "http://10.9.8.9:9000", "NETSY_ASSUME_ROLE": "",
        "NETSY_ACCESS_KEY_ID": "keeper", "NETSY_SECRET_ACCESS_KEY": "secret/4",
        "REGISTRY_ENABLED": "true", "REGISTRY_HOSTNAME": "registry.blue.example", "REGISTRY_BUCKET": "images", "REGISTRY_REGION": "home",
        "REGISTRY_ENDPOINT": "http://10.9.8.9:9000", "REGISTRY_ASSUME_ROLE": "", "REGISTRY_ACCESS_KEY_ID": "reader",
        "REGISTRY_SECRET_ACCESS_KEY": "secret/1+2=", **more,
    }


def user_data(authority, **more):
    """Complete user data: mutable settings are copied to mutable.env."""
    return {**bare(authority), **delivery(), **more}


SERVER = "kube-apiserver"


def arguments(ipv4, ipv6):
    """Flags of each service of a machine with these addresses, with their values."""
    return {
        "kubelet": {
            "config": "/opt/kubelet/etc/kubelet.yaml", "kubeconfig": "/opt/kubelet/etc/kubeconfig", "node-ip": f"{ipv4},{ipv6}",
            "hostname-override": "one", "provider-id": "iid-one",
            "node-labels": "node.kubernetes.io/instance-type=small,topology.kubernetes.io/region=home,topology.kubernetes.io/zone=home-1",
        },
        "kube-apiserver": {
            "v": "2", "service-cluster-ip-range": "10.18.0.0/15,fdc6::/108", "goaway-chance": "0", "external-hostname": "api.blue.example",
            "secure-port": "6443", "etcd-servers": "https://127.0.0.1:2378", "etcd-cafile": f"{CRT}/ca.crt",
            "etcd-certfile": f"{CRT}/{SERVER}.client.crt", "etcd-keyfile": f"{KEY}/{SERVER}/{SERVER}.client.key",
            "etcd-compaction-interval": "0", "watch-cache": "false", "etcd-healthcheck-timeout": "5s", "etcd-readycheck-timeout": "5s",
            "service-account-issuer": "https://api.blue.example:6443",
            "service-account-jwks-uri": "https://api.blue.example:6443/openid/v1/jwks",
            "service-account-key-file": f"{PUB}/service-accounts.pub",
            "service-account-signing-key-file": f"{KEY}/{SERVER}/service-accounts.key", "client-ca-file": f"{CRT}/ca.crt",
            "tls-cert-file": f"{CRT}/{SERVER}.server.crt", "tls-private-key-file": f"{KEY}/{SERVER}/{SERVER}.server.key",
            "tls-min-version": "VersionTLS13", "tls-cipher-suites": "TLS_AES_256_GCM_SHA384",
            "kubelet-client-certificate": f"{CRT}/{SERVER}.client.crt", "kubelet-client-key": f"{KEY}/{SERVER}/{SERVER}.client.key",
            "kubelet-certificate-authority": f"{CRT}/ca.crt", "proxy-client-cert-file": f"{CRT}/front-proxy.client.crt",
            "proxy-client-key-file": f"{KEY}/{SERVER}/front-proxy.client.key", "requestheader-client-ca-file": f"{CRT}/ca.crt",
            "requestheader-allowed-names": "front-proxy-client", "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group", "requestheader-uid-headers": "X-Remote-Uid",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-", "kubelet-preferred-address-types": "InternalIP,InternalDNS",
            "anonymous-auth": "false", "oidc-issuer-url": "https://login.blue.example", "oidc-client-id": "blue",
            "oidc-username-claim": "sub", "oidc-username-prefix": "", "oidc-groups-claim": "groups", "oidc-groups-prefix": "",
            "oidc-signing-algs": "RS256", "authorization-mode": "Node,RBAC", "allow-privileged": "true",
            "enable-admission-plugins": "NodeRestriction,NamespaceExists,OwnerReferencesPermissionEnforcement",
        },
        "kube-controller-manager": {
            "v": "2", "kubeconfig": "/opt/kube-controller-manager/etc/kubeconfig", "root-ca-file": f"{CRT}/ca.crt", "client-ca-file": f"{CRT}/ca.crt",
            "cluster-cidr": "10.64.0.0/10,fd64::/48", "allocate-node-cidrs": "true", "service-cluster-ip-range": "10.18.0.0/15,fdc6::/108",
            "node-cidr-mask-size-ipv4": "25", "node-cidr-mask-size-ipv6": "64", "use-service-account-credentials": "true",
            "tls-min-version": "VersionTLS13",
        },
        "kube-scheduler": {
            "config": "/opt/kube-scheduler/etc/kube-scheduler.yaml", "tls-min-version": "VersionTLS13",
            "tls-cert-file": f"{CRT}/kube-scheduler.client.crt", "tls-private-key-file": f"{KEY}/kube-scheduler/kube-scheduler.client.key",
        },
    }
