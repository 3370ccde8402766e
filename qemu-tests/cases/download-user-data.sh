#!/bin/bash
# User data of a machine whose image is not baked: downloads what a baked image has, verifies it, installs it with dpkg, tar and useradd
# (tests/harness/install.sh), and has it configured. Its size and time are compared with vmbake's. Lines with @…@ are filled in.
set -euo pipefail
umask 022
export SOURCE_DATE_EPOCH=1700000000 HOME=/root
work=/var/tmp/artifacts
mkdir -p "$work/site"
cd "$work"
curl --fail --silent --show-error --retry 5 --retry-connrefused -o SHA256SUMS '@url@/SHA256SUMS'
echo '@digest@  SHA256SUMS' | sha256sum --check --quiet
cut -c67- SHA256SUMS | while read -r name; do echo "url=@url@/$name"; echo "output=$name"; done |
    curl --fail --silent --show-error --retry 5 --parallel --parallel-max 4 --config -
sha256sum --check --quiet SHA256SUMS
# cloud-init has given the number to its own user.
sed -i "s/\\b1000\\b/1001/g" install.sh
tar -xf layers.tar
bash install.sh / "$work/site" "$work/layers"
tar -C / -xpf plan.tar
systemctl daemon-reload

umask 077
cat >/opt/podplane/etc/user-data.env <<'VALUES'
@env@
VALUES
printf '%s' '@nonce@' >/opt/nstance-agent/identity/nonce.jwt
/opt/podplane/bin/install.sh
/opt/podplane/bin/configure.sh
/opt/podplane/bin/restart.sh
