#!/bin/bash
# User data in the form of a script, as a machine gets it whose image is not baked: it downloads the manifest of its kind and all that it pins,
# verifies that, and calls the programs that install, configure and start everything. Lines with @…@ are filled in for each machine.
#
# The tests of vmbake measure it beside what `vmbake user-data render` makes of the same settings.
set -euo pipefail
umask 077
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
manifest_url='@manifest-url@' manifest_digest='@manifest-digest@'
artifacts=/opt/podplane/artifacts manifest=/opt/podplane/share/vmconfig-manifest.json

# fetch URL DIGEST PATH: a file appears under its name once its digest is right.
fetch() {
    local tool=${2%%:*}sum expected=${2#*:}
    curl --fail --silent --show-error --location --proto '=http,https' --retry 5 --retry-delay 2 --retry-all-errors \
        --connect-timeout 10 --continue-at - --output "$3.part" "$1"
    if ! "$tool" --status --check <<<"$expected  $3.part"; then
        rm -f "$3.part"
        echo "$1: the digest is not $2" >&2
        return 1
    fi
    mv "$3.part" "$3"
}

mkdir -p "$artifacts" "${manifest%/*}" /opt/podplane/etc /opt/nstance-agent/identity
fetch "$manifest_url" "$manifest_digest" "$manifest"
# A line for each dependency that this provider needs: name, extension, URL, digest.
dependencies() {
    python3 - "$manifest" '@provider@' <<'PYTHON'
import json
import sys

path, provider = sys.argv[1:]
with open(path) as file:
    dependencies = json.load(file)["vmconfig"]["dependencies"]
extensions = {"deb": ".deb", "tar.gz": ".tar.gz", "binary": ""}
for name, entry in sorted(dependencies.items()):
    if entry["url"] and provider in entry.get("providers", [provider]):
        print(name, name + extensions[entry["type"]], entry["url"], entry["digest"])
PYTHON
}
pids=()
while read -r _ file url digest; do
    [ -e "$artifacts/$file" ] || { fetch "$url" "$digest" "$artifacts/$file" & pids+=($!); }
done < <(dependencies)
for pid in "${pids[@]}"; do
    wait "$pid"
done
if [ -e "$artifacts/vmconfig.tar.gz" ]; then
    tar -xzpf "$artifacts/vmconfig.tar.gz" -C / --no-same-owner
fi
/opt/podplane/bin/install.sh

cat >/opt/podplane/etc/user-data.env <<'VALUES'
@env@
VALUES
printf '%s' '@nonce@' >/opt/nstance-agent/identity/nonce.jwt

/opt/podplane/bin/configure.sh
/opt/podplane/bin/restart.sh
