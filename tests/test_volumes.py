"""The test volumes of e2fsprogs, read by the example program `tree` of vmbake-disk and compared with debugfs.

Each volume is taken as it is and as `e2fsck -fy` repairs it; the forms that
`e2fsck -fn` then calls clean are compared: every path with its type, mode, owner, group, modification time, size, content, link
target, device, extended attributes and other names. A form whose journal needs recovery is compared with a copy in which e2fsck
has replayed it. The volumes are designed to break e2fsck, and repaired ones are as unusual as clean volumes can be.

Needs the source package of e2fsprogs from the Debian archive that apt uses, or DEBIAN_MIRROR, once. `tools/fuzz/compare.py` damages the volumes further.
"""

import bz2
import concurrent.futures
import gzip
import hashlib
import io
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import urllib.request

import pytest

from harness.debugfs import compare_lines, run, write_sparse
from harness.paths import TARGET
from harness.report import case

# The source of the archive's stable release, so that it stays where it is.
SOURCE = "pool/main/e/e2fsprogs/e2fsprogs_1.47.2.orig.tar.gz"
SHA256 = "6dcd67ff9d8b13274ba3f088e4318be4f5b71412cd863524423fc49d39a6371f"
KEPT = TARGET / "volumes"
# As many as are equal at least, of 280 that are clean.
EQUAL = 262
# Which forms are refused, and a part of the reason. The kernel refuses the damaged ones too, except for the link with a zero in it;
# that the superblock and the inodes contradict each other about `ea_inode` is only said by later versions of it and of e2fsck.
EXPECTED = {
    **{f"{name}, repaired": "encrypted file" for name in (
        "f_bad_encryption", "f_badsymlinks2", "f_dup_de_crypt", "f_encrypted_lpf", "f_short_encrypted_dirent")},
    **{f"{name}, as it is": "block group 0: checksum" for name in ("f_bad_gdt_csum", "f_uninit_enable")},
    **{f"j_corrupt_{name}, as it is": "of the journal: " for name in (
        "commit_csum", "descr_csum", "journal_block", "revoke_rcount")},
    **{f"f_ea_inode_no_feature, {form}": "without feature ea_inode" for form in ("as it is", "repaired")},
    "f_badtable, repaired": "directory entry of 0 bytes",
    "f_extent_too_deep, as it is": "extent tree of depth 7",
    "f_first_meta_bg_too_big, as it is": "meta block groups from 2 of 1",
    "f_inlinedata_repair, repaired": "link target",
    "f_zero_inode_size, as it is": "inodes of 0 bytes",
}
# e2fsck does not end on these forms.
ENDLESS = {("f_illitable_flexbg", "as it is"), ("f_misstable", "as it is")}


@pytest.mark.slow
def test_volumes(examples):
    volumes = read_source(fetch())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(judge, examples / "tree", *volume) for volume in volumes]
        results = [result for job in jobs for result in job.result()]
    for form, verdict, what in results:
        case(f"{form}: {verdict}: {what}", verdict == "equal" or (verdict == "refused" and EXPECTED.get(form, "\n") in what))
    equal = sum(verdict == "equal" for _, verdict, _ in results)
    case(f"{equal} of {len(results)} clean forms of {len(volumes)} volumes are equal, {EQUAL} were", equal >= EQUAL)


def fetch():
    """The source of e2fsprogs, from an earlier run or from the archive."""
    path = KEPT / SOURCE.rsplit("/", maxsplit=1)[1]
    if not path.exists():
        uris = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=True, capture_output=True, text=True)
        archives = [uri for uri in uris.stdout.split() if uri.rstrip("/").endswith("/debian")]
        mirror = os.environ.get("DEBIAN_MIRROR") or max(archives, key=archives.count)
        with urllib.request.urlopen(f"{mirror.rstrip('/')}/{SOURCE}", timeout=60) as answer:
            data = answer.read()
        check_sum(data)
        KEPT.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(data)
        part.rename(path)
    data = path.read_bytes()
    check_sum(data)
    return data


def check_sum(data):
    assert hashlib.sha256(data).hexdigest() == SHA256, SOURCE


def read_source(data):
    """Name and compressed content of each volume, with what decompresses it, by name."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data)) as source:
        for member in source:
            match = re.fullmatch(r"[^/]*/tests/([^/]*)/(image[^/]*|journal)\.(gz|bz2)", member.name)
            if not match or not member.isfile():
                continue
            test, file, form = match.groups()
            data, decompress = source.extractfile(member).read(), (gzip if form == "gz" else bz2).decompress
            if file.endswith(".tar"):
                with tarfile.open(fileobj=io.BytesIO(decompress(data))) as parts:
                    found += [(f"{test}/{part.name}", parts.extractfile(part).read(), bytes) for part in parts if part.isfile()]
            else:
                found.append((test if file == "image" else f"{test}/{file}", data, decompress))
    return sorted(found, key=lambda one: one[0])


def judge(tree, name, compressed, decompress):
    """Results for the forms of a volume: (form, equal|refused|wrong, why)."""
    results = []
    data = decompress(compressed)
    with tempfile.TemporaryDirectory() as scratch:
        for form in ("as it is", "repaired"):
            image = pathlib.Path(scratch, "image")
            if (name, form) in ENDLESS:
                continue
            write_sparse(image, data)
            if form == "repaired":
                run("e2fsck", "-fy", str(image))
            if run("e2fsck", "-fn", str(image)) != 0:
                continue
            results.append((f"{name}, {form}", *compare(tree, image)))
    return results


def compare(tree, image):
    done = subprocess.run([tree, image], capture_output=True, check=False, timeout=120)
    lines = done.stdout.decode().splitlines()[1:]
    if done.returncode != 0:
        return "wrong", f"exit status {done.returncode}: {done.stderr.decode()[-300:]}"
    if lines and lines[0].startswith("refused\t"):
        return "refused", lines[0].split("\t", maxsplit=1)[1]
    return compare_lines(lines, image)
