"""Bakes an image with a package and all that it needs, by name and without other configuration, lets the real dpkg install the same packages into the same
root file system, and compares every path that either of them has changed: content, mode, owner, target, extended attributes; and what `dpkg --audit` and
`dpkg --verify` say. Packages that wait for the first boot are configured first, by dpkg in a chroot over the image. Needs root, for chroot and mounts,
and the Debian archive."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import time

# Allowed differences, each with a reason.
MEANT = [
    (r"/var/log/.*", "logs of the installation"),
    (r"/var/(lib/dpkg|cache/debconf)/[^/]*-old", "backups, which the layer hygiene removes"),
    (r"/etc/[^/]*-", "backups of account files, which the layer hygiene removes"),
    (r"/etc/[.]pwd[.]lock|/var/lib/dpkg/lock.*|/var/lib/dpkg/triggers/Lock|/var/lib/dpkg/updates", "locks"),
    (r"/var/cache/ldconfig.*", "what ldconfig keeps for itself: it makes it anew"),
    (r"/var/cache/(man|apt)(/.*)?", "caches, which a timer and apt make"),
    (r".*/__pycache__(/.*)?", "Python's byte-code is made when a program runs"),
    (r"/(run|tmp|dev|proc|sys|debs)(/.*)?|/usr/sbin/policy-rc[.]d", "not of the image"),
    (r"/var/lib/vmbake(/.*)?|.*/vmbake-configure-packages[.]service", "what configures packages that wait"),
    (r"/etc/runit/runsvdir/default/.*", "not linked where there is a policy-rc.d, as in the chroot"),
    (r"/etc/machine-id|/etc/os-release", "the layer hygiene sets them"),
    (r"/var/lib/apt/extended_states", "apt marks there what it installs for other packages; dpkg does not"),
    (r"/var/lib/ucf/(hashfile|registry)[.]\d", "earlier states, in the order in which packages were configured"),
    (r"/etc/varnish/secret", "a random number, which systemd-tmpfiles takes from /proc on each machine"),
]
# Further differences when packages are configured on the machine, which are specific to each machine.
EACH_ITS_OWN = [
    (r"/etc/ssl/(certs|private)/ssl-cert-snakeoil[.](pem|key)|/etc/ssl/certs/[0-9a-f]{8}[.]\d+", "a random key, and its certificate"),
    (r"/var/lib/dlocate/.*", "an index with times and states of that moment, in the order of a Perl hash"),
    (r"/etc/bind/rndc[.]key|/etc/munge/munge[.]key|/etc/firebird/4[.]0/SYSDBA[.]password|/etc/pacemaker/authkey", "a random key or password"),
    (r"/etc/nsd/nsd_(control|server)[.](key|pem)|/opt/[^/]+/tls/tls[.](crt|key)", "a random key, and its certificate"),
    (r"/etc/freeradius/3[.]0/certs/dh", "random parameters"),
    (r"/etc/mailman3/mailman[.]cfg|/var/lib/ucf/cache/:etc:mailman3:mailman[.]cfg", "a random password"),
    (r"/etc/ldap/slapd[.]d/.*[.]ldif|/var/lib/ldap/data[.]mdb", "a new directory, with identifiers and times"),
    (r"/var/lib/firebird/4[.]0/system/security4[.]fdb", "the database with that password"),
    (r"/var/lib/postgresql/\d+/main/(global/pg_control|pg_wal/.*|pg_stat/.*)", "a new cluster of databases, with an identifier and times"),
    (r"/etc/ssl/certs/java/cacerts", "it has the times at which certificates were added"),
    (r"/var/lib/certmonger/.*", "random keys, and names made of the time"),
    (r"/var/lib/rabbitmq/[.]erlang[.]cookie|/var/lib/pkcs11-daemon/softhsm2[.]psk|/etc/postsrsd[.]secret", "a random key"),
    (r"/etc/dbconfig-common/.*|/var/lib/ucf/cache/:etc:(dbconfig-common|puppetdb:conf[.]d|rsyslog[.]d):.*|/etc/puppetdb/conf[.]d/database[.]ini|/etc/rsyslog[.]d/pgsql[.]conf",
     "a random password of a database"),
    (r"/var/lib/mysql/.*", "a new database, with identifiers and times"),
    (r"/boot/initrd[.]img-.*", "it has the times at which its files were written"),
    (r"/var/cache/fontconfig/[0-9a-f-]+-le64[.]cache-\d+", "it has the times of directories"),
]
MEANT, EACH_ITS_OWN = ([(re.compile(pattern), reason) for pattern, reason in rules] for rules in (MEANT, EACH_ITS_OWN))
INNER = """set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    [ -e "$2/merged/dev/${device%:*}" ] || mknod -m 666 "$2/merged/dev/${device%:*}" c 1 "${device#*:}"
done
mkdir -p "$2/merged/proc"
# Scripts read the name of process 1, which is that of the machines that the image is for.
cp "$2/merged/bin/dash" "$2/merged/tmp/systemd"
printf '#!/bin/sh\\nexit 101\\n' >"$2/merged/usr/sbin/policy-rc.d"
chmod 755 "$2/merged/usr/sbin/policy-rc.d"
folder=$2 command=$3
status=0
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    timeout 600 unshare --net --pid --fork --kill-child --mount-proc="$2/merged/proc" chroot "$folder/merged" /tmp/systemd -c "$command" </dev/null >"$folder/out" 2>&1 || status=$?
rm -f "$folder/merged/usr/sbin/policy-rc.d" "$folder/merged/tmp/systemd"
umount "$folder/merged"
exit $status
"""


def chroot(lower, folder, command):
    """Runs a command in a chroot over `lower`; changes are in `folder`/upper. Gives the status and the output."""
    for name in "upper", "work", "merged":
        (folder / name).mkdir(exist_ok=True)
    ran = subprocess.run(["unshare", "--mount", "bash", "-c", INNER, "-", lower, folder, command])
    return ran.returncode, (folder / "out").read_text(errors="replace")


class Overlay:
    """A root with the changes of an overlay, read without a mount."""

    def __init__(self, lower, upper):
        self.lower, self.upper = str(lower), str(upper)

    def changes(self):
        """Every path of the upper folder, whiteouts too."""
        for path, directories, files in os.walk(self.upper):
            for name in directories + files:
                yield os.path.join(path, name)[len(self.upper):]

    def find(self, path):
        """Where a path is on this machine, which no link leads to."""
        opaque = False
        parts = path.strip("/").split("/")
        for at in range(1, len(parts) + 1):
            here = os.path.join(self.upper, *parts[:at])
            try:
                meta = os.lstat(here)
            except FileNotFoundError:
                return None if opaque else existing(os.path.join(self.lower, *parts))
            except NotADirectoryError:
                return None
            if stat.S_ISCHR(meta.st_mode) and meta.st_rdev == 0:
                return None
            if stat.S_ISDIR(meta.st_mode) and "trusted.overlay.opaque" in os.listxattr(here, follow_symlinks=False):
                opaque = True
        return here


def existing(path):
    try:
        os.lstat(path)
        return path
    except (FileNotFoundError, NotADirectoryError):
        return None


def describe(here):
    """Compared properties of a path."""
    if here is None:
        return {"type": "missing"}
    meta = os.lstat(here)
    found = {"type": stat.S_IFMT(meta.st_mode), "owner": (meta.st_uid, meta.st_gid)}
    if stat.S_ISLNK(meta.st_mode):
        found["target"] = os.readlink(here)
        return found
    found["mode"] = oct(stat.S_IMODE(meta.st_mode))
    names = [name for name in os.listxattr(here) if not name.startswith("trusted.overlay.")]
    found["xattrs"] = {name: os.getxattr(here, name) for name in names}
    if stat.S_ISREG(meta.st_mode):
        with open(here, "rb") as file:
            found["content"] = (meta.st_size, hashlib.file_digest(file, "sha256").hexdigest())
    return found


def text_difference(left, right):
    """The first lines in which two files differ."""
    import difflib
    texts = [open(path, "rb").read() for path in (left, right)]
    if any(b"\0" in text or len(text) > 8 << 20 for text in texts):
        return []
    lines = [text.decode("utf-8", "replace").splitlines() for text in texts]
    return [line[:200] for line, _ in zip(difflib.unified_diff(*lines, "dpkg", "image", n=0, lineterm=""), range(14))]


# Files whose lines come in the order in which packages are unpacked or configured: another one if some of them wait, and always in the files of triggers and ucf,
# as dpkg promises no order beyond what packages depend on.
IN_ANY_ORDER = ["/etc/group", "/etc/gshadow", "/etc/passwd", "/etc/shadow", "/usr/share/info/dir"]
ALWAYS_IN_ANY_ORDER = ["/var/lib/dpkg/triggers/File", "/var/lib/ucf/hashfile", "/var/lib/ucf/registry"]


def same_meaning(path, left, right, waited):
    """Whether two files differ only in what may: in shadow(5) the day of the last change, which is that of the image here and today there; in
    others the order of lines; in ucf's the digests of files that each machine has its own of."""
    is_unordered = path in ALWAYS_IN_ANY_ORDER or (waited and path in IN_ANY_ORDER)
    if path != "/etc/shadow" and not is_unordered:
        return False
    texts = [open(name, newline="").read() for name in (left, right)]
    if path == "/etc/shadow":
        texts = [re.sub(r"(?m)^([^:]*:[!*]*:)\d+:", r"\1:", text) for text in texts]
    if is_unordered:
        texts = [sorted(text.splitlines()) for text in texts]
    if path == "/var/lib/ucf/hashfile":
        own = [re.compile(r"[0-9a-f]{32}  (" + pattern.pattern + ")") for pattern, _ in EACH_ITS_OWN]
        texts = [[line for line in lines if not any(pattern.fullmatch(line) for pattern in own)] for lines in texts]
    return texts[0] == texts[1]


def compare(real, image, origin, kind, waited):
    """Differences between two overlays, dpkg's and the image's, and the number of compared paths."""
    own = {path for path, found in origin["paths"].items() if found["layer"] == kind}
    own |= {path for path, layer in origin["removed"].items() if layer in (None, kind)}
    paths = own | set(real.changes()) | set(image.changes())
    meant = MEANT + EACH_ITS_OWN if waited else MEANT
    found = []
    compared = 0
    for path in sorted(paths):
        if any(pattern.fullmatch(path) for pattern, _ in meant):
            continue
        compared += 1
        here, there = real.find(path), image.find(path)
        left, right = describe(here), describe(there)
        keys = ["type"] if left["type"] != right["type"] else [key for key in left if left[key] != right[key]]
        for key in keys:
            if key == "content" and same_meaning(path, here, there, waited):
                continue
            found.append(f"{path}: {key}: dpkg {left[key]!r}, image {right[key]!r}")
            if key == "content":
                found += ["    " + line for line in text_difference(here, there)]
    return found, compared


class Bench:
    """Data common to all packages of a test."""

    def __init__(self, vmbake, base, rootfs, work):
        self.vmbake, self.base, self.work, self.root, self.store = str(vmbake), str(base), work, work / "root", str(work / "store")
        # For other packages than those of the Debian archive: keys of the layer, options of every command.
        self.layer, self.options = {}, []
        self.root.mkdir()
        subprocess.run(["tar", "-C", self.root, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xpf", rootfs], check=True)
        (self.root / "dev").mkdir(exist_ok=True)

    def run(self, folder, *args):
        ran = subprocess.run([self.vmbake, *args], cwd=folder, capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    def bake(self, folder, name, **keys):
        """Bakes an image of one package, or of a layer with these keys; gives an error, or nothing, and the seconds of the bake."""
        # The prefix keeps it apart from the built-in layers, of which some have the name of a package.
        kind = "only-" + re.sub(r"[^a-z0-9-]", "-", name)
        layer = folder / "layers" / kind
        layer.mkdir(parents=True)
        (layer / "layer.json").write_text(json.dumps({"name": kind, "version": "1", "description": name, "os": ["debian-13"], **(keys or {"packages": [name]}), **self.layer}))
        for args in (["update", kind, "--image", self.base, "--store", self.store], ["fetch", kind, "--store", self.store]):
            status, _, said = self.run(folder, *args, *self.options)
            if status:
                return kind, said, 0
        start = time.monotonic()
        status, _, said = self.run(folder, "bake", kind, "--base", self.base, "--store", self.store, "--offline", "--format", "raw", "--out", "dist",
                                   *self.options)
        return kind, said if status else "", time.monotonic() - start

    def debs(self, folder, kind, target):
        manifest = json.loads((folder / f"manifests/{kind}.debian-13.amd64.json").read_text())
        target.mkdir()
        names = []
        for name, item in manifest["vmconfig"]["dependencies"].items():
            if item["type"] == "deb":
                algorithm, digest = item["digest"].split(":")
                shutil.copy(f"{self.store}/blobs/{algorithm}/{digest}", target / f"{name}.deb")
                names.append(name)
        return names

    def judge(self, name, removed=(), **keys):
        """Bakes and compares one package, or a layer with these keys that removes packages. Returns a result: state, notes and numbers."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        if removed:
            keys["remove_packages"] = list(removed)
        kind, said, seconds = self.bake(folder, name, **keys)
        if said:
            lines = [line for line in said.splitlines() if not line.startswith(("  fetched", "   pinned"))]
            start = next((at for at, line in enumerate(lines) if line.startswith("error")), max(len(lines) - 3, 0))
            shutil.rmtree(folder)
            return {"package": name, "state": "refused", "said": lines[start:start + 12]}
        try:
            return {"package": name, "seconds": round(seconds, 2), **self.against_dpkg(folder, kind, removed)}
        finally:
            shutil.rmtree(folder)

    def against_dpkg(self, folder, kind, removed=()):
        dist = folder / "dist"
        image, origin = next(dist.glob("*.raw")), json.loads(next(dist.glob("*.origin.json")).read_text())
        real = folder / "real"
        (real / "upper").mkdir(parents=True)
        names = self.debs(folder, kind, real / "upper/debs")
        if not names and not removed:
            return {"state": "ok", "said": ["the base has it"]}
        install = "dpkg --force-unsafe-io --force-confold -i"
        # As apt calls dpkg for both.
        steps = ["dpkg --force-unsafe-io --force-depends --no-triggers --purge " + " ".join(removed)] if removed else []
        steps.append(f"{install} /debs/*.deb" if names else "dpkg --configure --pending")
        status, out = chroot(self.root, real, " && ".join(steps))
        if left := re.findall(r"^ (/debs/\S+)$", out, re.MULTILINE):
            # What others of the same call have to be configured before; apt makes it a second call.
            status, out = chroot(self.root, real, f"{install} {' '.join(left)} && dpkg --configure --pending")
        if status:
            return {"state": "dpkg failed", "said": out.splitlines()[-12:]}
        after = real / "after"
        after.mkdir()
        _, audit = chroot(f"{real}/upper:{self.root}", after, "dpkg --audit; dpkg --verify")
        mount = folder / "image"
        mount.mkdir()
        start = subprocess.run(["sgdisk", "-i", "1", image], stdout=subprocess.PIPE, text=True, check=True).stdout
        first = int(re.search(r"First sector: (\d+)", start)[1])
        subprocess.run(["mount", "-o", f"ro,noload,loop,offset={first * 512}", image, mount], check=True)
        try:
            deferred = origin.get("deferred", {})
            waited = [f"{package}: {why}" for package, why in deferred.items()]
            inside, untouched = folder / "inside", folder / "untouched"
            inside.mkdir()
            if deferred:
                status, out = chroot(mount, inside, "dpkg --configure --pending")
                if status:
                    return {"state": "waits wrongly", "said": [*waited, *out.splitlines()[-12:]]}
            changed = Overlay(mount, inside / "upper" if deferred else untouched)
            found, compared = compare(Overlay(self.root, real / "upper"), changed, origin, kind, bool(deferred))
            below = f"{inside}/upper:{mount}" if deferred else mount
            looked = folder / "looked"
            looked.mkdir()
            status, own = chroot(below, looked, "dpkg --audit; dpkg --verify")
            if own != audit:
                found.append(f"dpkg reports for the image: {own[:400]}, and for its own result: {audit[:400]}")
        finally:
            subprocess.run(["umount", mount], check=True)
        state = ("waits, differs" if found else "waits") if deferred else ("differs" if found else "ok")
        return {"state": state, "said": [*waited, *found[:60]], "packages": len(names), "paths": compared}
