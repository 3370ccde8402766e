#!/usr/bin/env python3
"""boot.py VMBAKE BASE [RUNS]: how long a control plane node takes until it is configured: the image in target/kinds, compared with the base
image with a script as user data that downloads the same artifacts from this host, verifies and installs them (cases/download-user-data.sh).

Both boot in the same way and kind of machine. Only ratios are meaningful; seconds depend on the host.
"""

import hashlib
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from harness import first_boot, installed, nstance, web
from harness.node import Node
from harness.paths import CASES, HARNESS, ROOT
from harness.report import case, failures
from harness.run import must
from harness.upstream import bake

PORT = 8080
# A download and an installation below emulation.
LONG = 20 * 60
CONFIGURED = r"vmbake-firstboot: configured knc\b"


def site(vmbake, work):
    """Downloads of the script: files with their digests. Returns the folder and the digest of the list."""
    folder = work / "download"
    folder.mkdir()
    installed.site(folder)
    subprocess.run(["tar", "-C", ROOT, "-cf", folder / "layers.tar", "layers"], check=True)
    shutil.copy(HARNESS / "install.sh", folder)
    # Results of a bake of the layers: the plan, the defaults, configuration that is the same everywhere.
    plan, share = work / "plan", "opt/podplane/share"
    for path in (ROOT / "layers").glob("*/files/opt/podplane/share/templates/*"):
        first_boot.place(plan, f"{share}/templates/{path.name}", path.read_text(), 0o644)
    first_boot.write(ROOT / "layers", plan)
    shutil.rmtree(plan / share / "templates")
    first_boot.place(plan, f"{share}/firstboot.json", must(vmbake, "cat", bake.image("knc", "amd64"), f"/{share}/firstboot.json"), 0o644)
    subprocess.run(["tar", "-C", plan, "--owner=0", "--group=0", "-cf", folder / "plan.tar", *sorted(path.name for path in plan.iterdir())], check=True)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    sums = subprocess.check_output(["sha256sum", *names], cwd=folder)
    (folder / "SHA256SUMS").write_bytes(sums)
    return folder, hashlib.sha256(sums).hexdigest()


def measured(name, image, folder, server, **options):
    """Seconds from power on, and from when the network was up, until the machine said that it is configured."""
    heard = {}

    def hear(seconds, what):
        heard.setdefault(what, seconds)
    with Node(image, folder, case, "knc", firmware="direct", heard=hear, size="8G", **options) as node:
        node.guests[f"{nstance.ADDRESS}:{PORT}"] = f"127.0.0.1:{server.server_port}"
        node.boot()
        if not re.search(CONFIGURED, node.wait(f"{CONFIGURED}|Failed to start.*cloud-final", LONG)[0]):
            sys.exit(f"{name}: the user data failed: {node.shell('tail -n 30 /var/log/cloud-init-output.log')[1]}")
        said = node.journal("-o", "short-monotonic", "--grep", CONFIGURED)
        configured = float(re.search(r"^\[ *([\d.]+)\]", said, re.MULTILINE).group(1))
        online = int(node.systemctl("show", "-P", "ActiveEnterTimestampMonotonic", "network-online.target")) / 1e6
        ended, said = node.booted(LONG)
        case(f"{name}: boots without a failed unit", ended and not node.failed(), said + node.systemctl("--failed"))
        found = node.states("containerd.service", "nstance-agent.service", "fluent-bit.service")
        case(f"{name}: services run", set(found.values()) == {("active", "enabled")}, found)
    shutil.rmtree(folder)
    print(f"{name:<22} power on to configured {heard['configured']:7.1f} s, network up to configured {configured - online:7.1f} s", flush=True)
    return heard["configured"], configured - online


def main(vmbake, base, runs="1"):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        work = pathlib.Path(folder)
        bake.bake(vmbake, {"amd64": base})
        files, digest = site(vmbake, work)
        script = work / "user-data.sh"
        url = f"http://{nstance.ADDRESS}:{PORT}"
        script.write_text((CASES / "download-user-data.sh").read_text().replace("@url@", url).replace("@digest@", digest))
        server = web.files(files)
        times = [(measured("baked", bake.image("knc", "amd64"), work / "baked", server),
                  measured("downloads, installs", base, work / "plain", server, script=script)) for _ in range(int(runs))]
        server.close()
    for number, what in enumerate(("power on", "network up")):
        ratio = statistics.median(plain[number] for _, plain in times) / statistics.median(baked[number] for baked, _ in times)
        print(f"ratio, {what} to configured: {ratio:.1f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
