"""ECDSA keys with deterministic signatures, and the encodings that certificates, logs and bundles share."""

import base64
import hashlib
import hmac
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

CURVES = {  # hash and group order of each curve; hashes are as long as the order, which keeps RFC 6979 short
    "P-256": (ec.SECP256R1(), hashes.SHA256(), "sha256",
              0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551),
    "P-384": (ec.SECP384R1(), hashes.SHA384(), "sha384",
              0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973),
}


class Key:
    """An ECDSA key that a text determines, and whose signatures message and key determine."""

    def __init__(self, text, curve):
        self.curve, self.hash, self._hash_name, self._order = CURVES[curve]
        self._size = self.curve.key_size // 8
        wide = int.from_bytes(hashlib.sha512(text.encode()).digest(), "big")
        self._secret = wide % (self._order - 1) + 1
        self.private = ec.derive_private_key(self._secret, self.curve)
        self.public = self.private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id = hashlib.sha256(self.public).digest()

    def sign(self, data):
        """RFC 6979 section 3.2, for hashes as long as the order of the group."""
        digest = hashlib.new(self._hash_name, data).digest()
        number = int.from_bytes(digest, "big")
        seed = self._bytes(self._secret) + self._bytes(number % self._order)
        key, value = bytes(len(digest)), b"\1" * len(digest)
        for step in (b"\0", b"\1"):
            key = self._mac(key, value + step + seed)
            value = self._mac(key, value)
        while True:
            value = self._mac(key, value)
            k = int.from_bytes(value, "big")
            if 0 < k < self._order:
                r = ec.derive_private_key(k, self.curve).public_key().public_numbers().x % self._order
                s = pow(k, -1, self._order) * (number + r * self._secret) % self._order
                if r and s:
                    return utils.encode_dss_signature(r, s)
            key = self._mac(key, value + b"\0")
            value = self._mac(key, value)

    def _bytes(self, number):
        return number.to_bytes(self._size, "big")

    def _mac(self, key, data):
        return hmac.new(key, data, self._hash_name).digest()


def der(tag, content):
    """An ASN.1 value."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def utf8(text):
    return der(0x0C, text.encode())


def canonical(value):
    """RFC 8785, for values of text and integers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def b64(data):
    return base64.b64encode(data).decode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()
