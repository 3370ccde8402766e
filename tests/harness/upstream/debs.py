"""Debian packages of the upstreams, stand-ins with the scripts and configuration files of the real ones."""

import hashlib
import os
import pathlib
import subprocess
import tempfile

POSTINST = """#!/bin/sh
set -e

case "$1" in
    configure)
        ldconfig
        if [ -d /run/systemd/system ]; then
            systemctl --system daemon-reload >/dev/null || true
        fi
        if [ -n "$2" ] && [ -d /run/systemd/system ]; then
            deb-systemd-invoke try-restart fluent-bit.service >/dev/null || true
        fi
        ;;
esac
"""


def deb(program, version, arch):
    """A package of fluent-bit: a program, a unit, configuration files and a script, like the real one."""
    files = {
        "opt/fluent-bit/bin/fluent-bit": program,
        "usr/lib/systemd/system/fluent-bit.service": b"[Service]\nExecStart=/opt/fluent-bit/bin/fluent-bit\n",
        "etc/fluent-bit/fluent-bit.conf": b"# stand-in\n",
        "etc/fluent-bit/parsers.conf": b"# stand-in\n",
    }
    return package("fluent-bit", version, arch, files, {"postinst": POSTINST}, ["opt/fluent-bit/bin/fluent-bit"], "libpq5")


def package(name, version, arch, files, scripts, programs, depends, conffiles=None):
    """A package, made by dpkg-deb; its configuration files are those in /etc, unless others are named."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        for path in programs:
            (root / path).chmod(0o755)
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: Test <test@example.org>\n"
            f"Depends: {depends}\nDescription: stand-in\n")
        # dpkg-deb refuses configuration files that the package has not.
        options = ["--nocheck"] if conffiles else []
        conffiles = conffiles or [path for path in files if path.startswith("etc/")]
        (root / "DEBIAN/conffiles").write_text("".join(f"/{path}\n" for path in conffiles))
        (root / "DEBIAN/md5sums").write_text("".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content in files.items()
                                                     if path not in conffiles))
        for script, text in scripts.items():
            (root / "DEBIAN" / script).write_text(text)
            (root / "DEBIAN" / script).chmod(0o755)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(["dpkg-deb", "--root-owner-group", *options, "-Zgzip", "--build", root, f"{folder}/x.deb"], env=environment,
                       check=True, stdout=subprocess.DEVNULL)
        return pathlib.Path(f"{folder}/x.deb").read_bytes()


# As those of the real package: they ask which init system runs, and talk to it.
SSM_SCRIPTS = {
    "preinst": """#!/bin/bash

echo "Preparing"
if [ $(cat /proc/1/comm) = init ]
then
    stop amazon-ssm-agent || true
elif [ $(cat /proc/1/comm) = systemd ]
then
    systemctl is-active snapd.service
    if [ $? -eq 0 ]; then
        snap list | grep "amazon-ssm-agent" && exit 1
    fi
    systemctl stop amazon-ssm-agent
    systemctl daemon-reload
fi
""",
    "postinst": """#!/bin/bash

echo "Starting"
if [ $(cat /proc/1/comm) = init ]
then
    start amazon-ssm-agent || true
elif [ $(cat /proc/1/comm) = systemd ]
then
    systemctl enable amazon-ssm-agent
    systemctl start amazon-ssm-agent
    systemctl daemon-reload
fi
""",
}
# Two of these are not in the package, as in the real one.
SSM_CONFFILES = ["etc/init/amazon-ssm-agent.conf", "etc/amazon/ssm/amazon-ssm-agent.json", "etc/amazon/ssm/seelog.xml",
                 "lib/systemd/system/amazon-ssm-agent.service"]
