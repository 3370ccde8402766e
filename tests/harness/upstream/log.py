"""A transparency log like Rekor v1, and its entries in bundles and trusted roots.

Formats: RFC 6962 for the Merkle tree, `openapi.yaml` of Rekor for answers of the log, signed notes for its checkpoints, bundle 0.3 and
trusted root 0.1 of protobuf-specs.
"""

import hashlib

from harness.upstream.keys import Key, b64, canonical

REKOR_URL = "https://rekor.sigstore.dev"
FIRST_LOG_INDEX = 4163431  # of this tree: Rekor counts through its earlier trees too
TREE_ID = 1193050959916656506
STRANGERS = 3  # entries of others that the log starts with


class Log:
    """A transparency log like Rekor v1: one Merkle tree, into which others write too."""

    def __init__(self, seed):
        self.key = Key(f"{seed}: transparency log", "P-256")
        self._leaves = []
        self._add_strangers(STRANGERS)

    def append(self, body, time):
        """Logs a body; answers the identifier of the entry, and the entry with its proof in the tree of that moment."""
        index = len(self._leaves)
        self._leaves.append(leaf_hash(body))
        # Different numbers, so that entries lie at different places of trees of different shapes.
        self._add_strangers(index % 5)
        entry = {"body": b64(body), "integratedTime": time, "logID": self.key.id.hex(),
                 "logIndex": FIRST_LOG_INDEX + index}
        root, size = tree_hash(self._leaves).hex(), len(self._leaves)
        entry["verification"] = {
            "inclusionProof": {
                "checkpoint": self.checkpoint(size, root, self.key.id),
                "hashes": [node.hex() for node in path(index, self._leaves)],
                "logIndex": index, "rootHash": root, "treeSize": size,
            },
            "signedEntryTimestamp": self.promise(entry),
        }
        return f"{TREE_ID:016x}{self._leaves[index].hex()}", entry

    def promise(self, entry):
        """The log's signature over an entry: `signedEntryTimestamp`."""
        signed = {member: entry[member] for member in ("body", "integratedTime", "logID", "logIndex")}
        return b64(self.key.sign(canonical(signed)))

    def checkpoint(self, size, root, key_id):
        """The signed note about a tree."""
        host = REKOR_URL.removeprefix("https://")
        text = f"{host} - {TREE_ID}\n{size}\n{b64(bytes.fromhex(root))}\n"
        return f"{text}\n\u2014 {host} {b64(key_id[:4] + self.key.sign(text.encode()))}\n"

    def _add_strangers(self, count):
        self._leaves += [leaf_hash(b"foreign entry %d" % (len(self._leaves) + i)) for i in range(count)]


def bundle_entry(entry, kind):
    """An entry as bundles have it: numbers are strings, and hashes base64."""
    proof = entry["verification"]["inclusionProof"]
    return {
        "logIndex": str(entry["logIndex"]),
        "logId": {"keyId": b64(bytes.fromhex(entry["logID"]))},
        "kindVersion": {"kind": kind, "version": "0.0.1"},
        "integratedTime": str(entry["integratedTime"]),
        "inclusionPromise": {"signedEntryTimestamp": entry["verification"]["signedEntryTimestamp"]},
        "inclusionProof": {
            "logIndex": str(proof["logIndex"]), "treeSize": str(proof["treeSize"]),
            "rootHash": b64(bytes.fromhex(proof["rootHash"])),
            "hashes": [b64(bytes.fromhex(node)) for node in proof["hashes"]],
            "checkpoint": {"envelope": proof["checkpoint"]},
        },
        "canonicalizedBody": entry["body"],
    }


def log_key(url, key, start):
    """A log, as trusted roots have it."""
    return {"baseUrl": url, "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(key.id)},
            "publicKey": {"rawBytes": b64(key.public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": start}}


def leaf_hash(body):
    return hashlib.sha256(b"\0" + body).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def split(leaves):
    """RFC 6962 section 2.1: the left tree has the largest power of two below the number of leaves."""
    return 1 << (len(leaves) - 1).bit_length() - 1


def tree_hash(leaves):
    if len(leaves) == 1:
        return leaves[0]
    left = split(leaves)
    return node_hash(tree_hash(leaves[:left]), tree_hash(leaves[left:]))


def path(index, leaves):
    """RFC 6962 section 2.1.1: the audit path from a leaf to the root."""
    if len(leaves) == 1:
        return []
    left = split(leaves)
    if index < left:
        return [*path(index, leaves[:left]), tree_hash(leaves[left:])]
    return [*path(index - left, leaves[left:]), tree_hash(leaves[:left])]
