"""The preinst and postinst of Debian packages run by dash, in a chroot whose commands of Debian are stubs that log their arguments, and by the interpreter of
src/shell, as its example `trace`: calls, status, output and every file are the same. Needs root, and the Debian archive.

Refusals of the interpreter must have a line number; the calls up to there must be those of dash. The order of the packages depends only
on the archive. `listed` starts with a list of servers, and continues by the SHA-256 of the names, within SECTIONS. `popular` ranks all
sections by priority, then by the number of packages that depend on the package, recommend or suggest it: the archive has no
counts of installations, and popularity-contest publishes them elsewhere."""

import collections
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import pytest

from harness.listing import escape
from harness.paths import BASE_IMAGE, HARNESS

pytestmark = [pytest.mark.slow, pytest.mark.needs("root")]
SECTIONS = {"admin", "database", "httpd", "mail", "net", "utils"}
PRIORITIES = ["required", "important", "standard"]
LARGEST = 400_000
LARGEST_POPULAR = 2_000_000
# Looked at whatever their names' digests are: what servers have.
FIRST = """nginx-common apache2 haproxy redis-server chrony openssh-server docker.io postfix dovecot-core mariadb-common bind9 rsyslog cron udev
    dbus exim4-config exim4-base squid samba-common unbound memcached varnish lighttpd fail2ban logrotate systemd systemd-resolved ca-certificates
    adduser debconf tzdata openvpn snmpd nfs-common nfs-kernel-server rpcbind vsftpd proftpd-core dnsmasq monit supervisor mosquitto slapd
    postgresql-common tomcat10 ufw firewalld network-manager ifupdown sudo polkitd avahi-daemon cups-daemon man-db apparmor auditd aide
    clamav-daemon opendkim rspamd lvm2 mdadm cryptsetup open-iscsi keepalived tor privoxy prosody icecast2""".split()
# Files of the base in the chroot.
PACKAGES = """base-files base-passwd dash bash coreutils grep sed findutils debianutils diffutils libc6 libselinux1 libacl1 libattr1
    libpcre2-8-0 libgmp10 libssl3t64 libsystemd0 libcap2 libzstd1 zlib1g libgcc-s1 libtinfo6""".split()
# Commands of Debian and programs of their own: a caller of the interpreter answers for them, here with status 0.
STUBS = """adduser addgroup deluser delgroup useradd usermod userdel groupadd groupmod groupdel gpasswd passwd chage chfn chsh getent
    dpkg dpkg-query dpkg-divert dpkg-statoverride dpkg-trigger dpkg-maintscript-helper dpkg-reconfigure update-alternatives update-rc.d
    invoke-rc.d service start-stop-daemon deb-systemd-helper deb-systemd-invoke systemctl systemd-sysusers systemd-tmpfiles journalctl
    systemd-machine-id-setup systemd-hwdb udevadm ldconfig ucf ucfr ucfq update-ca-certificates a2enmod a2dismod a2enconf a2disconf
    a2ensite a2dissite a2query apache2_invoke py3compile py3clean pypy3compile pypy3clean pycompile install-info update-mime update-menus
    update-initramfs update-grub update-inetd update-icon-caches update-mime-database update-desktop-database update-shells add-shell
    remove-shell awk mawk perl python3 hostname ssh-keygen openssl runuser su setcap getcap modprobe ip sysctl apparmor_parser aa-enabled
    pam-auth-update glib-compile-schemas newaliases postconf postalias postfix debconf db_stop dd gzip tar find-nothing pidof pgrep pkill
    killall ps restorecon chcon selinuxenabled setfacl chattr lsattr mount umount mountpoint mknod mkfifo gpg curl wget crontab locale
    localedef locale-gen dbus-send dbus-uuidgen gdbus busctl loginctl hostnamectl timedatectl nginx apachectl apache2ctl
    update-exim4.conf update-exim4.conf.template sgml install-sgmlcatalog update-catalog update-xmlcatalog update-texmf mktexlsr
    emacs-package-install emacs-package-remove emacsen-common php phpenmod phpdismod phpquery lighty-enable-mod lighty-disable-mod xdg-mime
    update-fonts-alias mkfontscale mkfontdir fc-cache deb-gview file patch od base64 uuidgen mcookie iconv split paste join comm fold fmt
    nl tac rev column ed ex vi logger logrotate sqlite3 mysql psql createuser createdb pg_createcluster uim-module-manager make-ssl-cert
    dbconfig-generate-include rpm lsb_release arch nproc nohup timeout tput clear stty tty diff cksum sha1sum sha512sum shuf factor truncate
    fallocate df du free lsmod insmod depmod blkid lsblk findmnt swapon swapoff tempfile savelog run-parts ischroot""".split()
CONFMODULE = "".join(
    f"{name}() {{ RET=; /usr/bin/{name} \"$@\"; }}\n"
    for name in "db_get db_set db_input db_go db_stop db_version db_capb db_title db_fset db_fget db_reset db_unregister db_subst "
                "db_metaget db_settitle db_info db_beginblock db_endblock db_purge db_register db_progress db_x_loadtemplatefile".split())
STUB = "#!/bin/sh\n{ printf %s \"${0##*/}\"; for word do printf '\\037%s' \"$word\"; done; printf '\\036\\n'; } >> /.calls\nexit 0\n"
# Results of mktemp's templates.
TEMPORARY = re.compile(r"(/tmp/[\w.-]*[.-])\w{6,10}\b")
SCRIPTS = {"preinst": [["install"], ["upgrade", "0.1", "1.0"]], "postinst": [["configure", ""], ["configure", "0.1"]]}


def listed(stanzas):
    """Names of the packages: servers, then drawn ones."""
    drawn = [fields["Package"] for fields in stanzas if fields.get("Section") in SECTIONS and int(fields["Size"]) < LARGEST]
    present = {fields["Package"] for fields in stanzas}
    return [name for name in FIRST if name in present] + sorted(set(drawn) - set(FIRST), key=digest)


def popular(stanzas):
    """Names of the packages by rank, without those that are too large to download."""
    dependents = collections.Counter()
    for fields in stanzas:
        relations = ",".join(fields.get(key, "") for key in ("Pre-Depends", "Depends", "Recommends", "Suggests"))
        dependents.update({re.split(r"[\s:(\[<]", relation.strip())[0] for relation in re.split(r"[,|]", relations)})
    ranked = sorted(stanzas, key=lambda fields: (
        PRIORITIES.index(fields["Priority"]) if fields.get("Priority") in PRIORITIES else len(PRIORITIES),
        -dependents[fields["Package"]], digest(fields["Package"])))
    return list(dict.fromkeys(fields["Package"] for fields in ranked if int(fields["Size"]) < LARGEST_POPULAR))


def digest(name):
    return hashlib.sha256(name.encode()).hexdigest()


def archive(work, wanted, ranking):
    """Names and folders of packages with a script of a shell, the first `wanted` of the order that `ranking` gives."""
    conf = subprocess.check_output([BASE_IMAGE / "apt-root.sh", work / "apt", "amd64"], text=True).strip()
    apt = {**os.environ, "APT_CONFIG": conf}
    shown = subprocess.run(["apt-cache", "dumpavail"], env=apt, stdout=subprocess.PIPE, text=True, check=True).stdout
    stanzas = []
    for stanza in shown.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.split("\n") if ": " in line and not line.startswith(" "))
        if "Package" in fields:
            stanzas.append(fields)
    order = ranking(stanzas)
    debs, scripts = work / "debs", work / "scripts"
    debs.mkdir(exist_ok=True)
    scripts.mkdir(exist_ok=True)
    found = 0
    while order and found < wanted:
        batch, order = order[:60], order[60:]
        present = {path.name.split("_")[0] for path in debs.iterdir()}
        missing = [name for name in batch if name not in present]
        if missing:
            subprocess.run(["apt-get", "-qq", "download", *missing], env=apt, cwd=debs, check=True, stderr=subprocess.DEVNULL)
        paths = {path.name.split("_")[0]: path for path in debs.iterdir()}
        for name in batch:
            if found < wanted and unpack(paths[name], scripts / name):
                found += 1
                yield name, scripts / name


def unpack(deb, folder):
    """Writes the scripts of a package; whether one is a shell's."""
    control = subprocess.run(["dpkg-deb", "--ctrl-tarfile", deb], stdout=subprocess.PIPE, check=True).stdout
    shells = 0
    with tarfile.open(fileobj=io.BytesIO(control)) as tar:
        for member in tar:
            name = os.path.basename(member.name)
            if name in SCRIPTS and member.isfile():
                content = tar.extractfile(member).read()
                folder.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)
                shells += bool(re.match(rb"#!\s*/bin/(ba|da)?sh", content))
    return shells


def chroot(rootfs, root):
    """The files of some packages of the base, and stubs. Whatever is not needed to run a script is left out."""
    with tarfile.open(rootfs) as tar:
        info = "./var/lib/dpkg/info/"
        lists = [member for member in tar.getnames() if member.startswith(info) and member.endswith(".list")
                 and member[len(info):-5].split(":")[0] in PACKAGES]
        wanted = {line for name in lists for line in tar.extractfile(name).read().decode().split("\n")}
        wanted |= {"/etc/passwd", "/etc/group", "/etc/shells", "/usr/bin/which", "/etc/alternatives/which"}
        skipped = re.compile(r"/usr/share/(doc|man|locale|info|lintian|bug)|/usr/lib/x86_64-linux-gnu/gconv|/dev")
        members = []
        for member in tar:
            path = member.name.removeprefix(".")
            merged = {path, path.removeprefix("/usr")}
            base = member.isdir() and path.count("/") <= 2 or path in ("/bin", "/sbin", "/lib", "/lib64")
            if not skipped.match(path) and (base or merged & wanted):
                members.append(member)
        tar.extractall(root, members)
    for name in {*STUBS, *re.findall(r"/usr/bin/(\S+)", CONFMODULE)}:
        for place in "usr/bin", "usr/sbin":
            (root / place / name).unlink(missing_ok=True)
        (root / "usr/bin" / name).write_text(STUB)
        (root / "usr/bin" / name).chmod(0o755)
    confmodule = root / "usr/share/debconf/confmodule"
    confmodule.parent.mkdir(parents=True, exist_ok=True)
    confmodule.write_text(CONFMODULE)
    for folder in "tmp", "run", "proc", "sys", "dev":
        (root / folder).mkdir(exist_ok=True)


INNER = """set -e
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$2/merged"
mknod -m 666 "$2/merged/dev/null" c 1 3
cp "$3" "$2/merged/.script"
chmod 755 "$2/merged/.script"
folder=$2
shift 3
status=0
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
    DPKG_MAINTSCRIPT_PACKAGE=package DPKG_MAINTSCRIPT_NAME=postinst \
    timeout 20 chroot "$folder/merged" /.script "$@" </dev/null >"$folder/out" 2>"$folder/err" || status=$?
echo $status >"$folder/status"
"""


def real(root, work, script, args):
    """Results of dash: calls, status, output, and the files of the chroot."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=work))
    for name in "upper", "work", "merged":
        (folder / name).mkdir()
    listing = f"{sys.executable} {HARNESS}/listing.py {folder}/merged"
    text = subprocess.run(["unshare", "-m", "bash", "-c", INNER + listing, "-", root, folder, script, *args],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    status, out = int((folder / "status").read_text()), (folder / "out").read_bytes()
    calls = folder / "upper/.calls"
    found = calls.read_bytes().split(b"\x1e\n")[:-1] if calls.exists() else []
    shutil.rmtree(folder)
    return [escape(call.replace(b"\x1f", b"\0")).replace("\\x00", "\x1f") for call in found], status, escape(out), text.split("\n")[:-1]


def parse(text):
    """The parts of the example's output, by script and arguments."""
    for part in text.split("=== ")[1:]:
        title, _, rest = part.partition("\n")
        parts = collections.defaultdict(list)
        for line in rest.split("\n"):
            kind, _, value = line.partition("\t")
            parts[kind].append(value)
        yield title, parts


def compare(parts, expected, bash):
    """Why a run of both differs; `None` where it does not, and a word for what the interpreter said."""
    calls, status, out, files = expected
    if parts["syntax"] and bash:
        return None, "refused a script of bash: " + re.sub(r".*?:\d+: ", "", parts["syntax"][0])
    if parts["syntax"]:
        return "does not parse: " + parts["syntax"][0], "syntax"
    parts["call"], calls = ([TEMPORARY.sub(r"\1*", call) for call in side] for side in (parts["call"], calls))
    if parts["error"]:
        said = parts["error"][0]
        prefix = calls[:len(parts["call"])]
        why = None if prefix == parts["call"] else f"calls before it differ: {parts['call']} / {prefix}"
        return why and f"{said}: {why}", "refused " + re.sub(r".*?:\d+: ", "", said)
    if parts["call"] != calls:
        return f"calls: {parts['call']}\n dash: {calls}", "run"
    if parts["status"] != [str(status)]:
        return f"status {parts['status']}, dash {status}: {parts['stderr']}", "run"
    if parts["stdout"] != [out]:
        return f"output {parts['stdout']}, dash {out}", "run"
    changed = set(parts["file"]) ^ set(files)
    if changed:
        return f"files: {sorted(changed)[:6]}", "run"
    return None, "run"


@pytest.fixture(scope="module")
def lab(rootfs):
    """A folder with the chroot and the names of its stubs. Packages that were downloaded for one test are there for the next."""
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        chroot(rootfs, work / "root")
        (work / "stubs").write_text("\n".join(sorted({*STUBS, *re.findall(r"/usr/bin/(\S+)", CONFMODULE)})) + "\n")
        yield work


def runs_of(work, wanted, ranking):
    """Scripts of shells, with the arguments of each run."""
    for _, folder in archive(work, wanted, ranking):
        for script, many in SCRIPTS.items():
            path = folder / script
            if path.exists() and re.match(rb"#!\s*/bin/(ba|da)?sh", path.read_bytes()):
                yield from ((path, args) for args in many)


@pytest.mark.parametrize("ranking, wanted", [pytest.param(listed, 500, id="listed"), pytest.param(popular, 2000, id="popular")])
def test_scripts(examples, lab, ranking, wanted):
    runs = list(runs_of(lab, wanted, ranking))
    (lab / "list").write_text("".join("\t".join([str(script), *args]) + "\n" for script, args in runs))
    said = subprocess.run([examples / "trace", lab / "root", lab / "list", lab / "stubs"], stdout=subprocess.PIPE, check=True).stdout.decode()
    counts, refusals, differing = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as overlay:
        for (script, args), (title, parts) in zip(runs, parse(said), strict=True):
            why, word = compare(parts, real(lab / "root", overlay, script, args), b"bash" in script.read_bytes().split(b"\n")[0])
            counts["differs" if why else "equal" if word == "run" else "refused"] += 1
            if word.startswith("refused"):
                refusals[word] += 1
            if why:
                differing.append(f"{title}\n  {why}")
    print(f"{len(runs)} runs of the scripts of {len({script.parent for script, _ in runs})} packages:", dict(counts))
    for word, count in refusals.most_common():
        print(f"{count:5} {word}"[:200])
    assert not differing, "\n".join(differing)
