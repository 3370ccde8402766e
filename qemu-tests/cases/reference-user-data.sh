#!/bin/bash
# User data as a script, as for machines before images were baked: it writes the settings, then calls the
# programs that install, configure and start everything. Lines with @…@ are filled in for each machine.
set -euo pipefail
umask 077

mkdir -p /opt/podplane/etc /opt/nstance-agent/identity
cat >/opt/podplane/etc/user-data.env <<'VALUES'
@env@
VALUES
printf '%s' '@nonce@' >/opt/nstance-agent/identity/nonce.jwt

# Forwards connections, as a script for the provider local does.
systemd-run --quiet --unit=forwarder --property=SuccessExitStatus=143 /usr/bin/socat TCP-LISTEN:6000,bind=127.0.0.1,fork TCP:127.0.0.1:22
hostnamectl set-hostname one

/opt/podplane/bin/install.sh
/opt/podplane/bin/configure.sh
/opt/podplane/bin/restart.sh
touch /run/reference-user-data.done
