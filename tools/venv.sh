#!/bin/bash
# venv.sh: installs the Python packages pinned in tests/requirements.txt into target/venv, whose Python finds the modules of tests, bench and qemu-tests.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/target/venv
cmp -s tests/requirements.txt "$venv/installed" && exit
rm -rf "$venv"
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes --requirement tests/requirements.txt
printf '%s\n' "$PWD/tests" "$PWD/bench" "$PWD/qemu-tests" >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/vmbake.pth"
cp tests/requirements.txt "$venv/installed"
