#!/bin/bash
# ruff.sh: asks ruff about the Python of the tests and tools, as pyproject.toml says. A pinned wheel of it is put into target/ruff.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=0.17.6 tools=$PWD/target/ruff
export PATH=$PATH:$tools/bin
if [ "$(ruff --version 2>/dev/null)" != "ruff $version" ]; then
    mkdir -p "$tools"
    cat >"$tools/requirements.txt" <<END
ruff==$version \\
    --hash=sha256:aa3b08254a732acba246891089a152c47c5733dc36b8ecb76ce8602f8326e5e4 \\
    --hash=sha256:435241c61af5909a022f76219d3d1bf24730dc1bf0acabb5ddf4b569ab3cbb30
END
    /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: --require-hashes --upgrade --target "$tools" \
        --requirement "$tools/requirements.txt"
fi
ruff check --quiet qemu-tests tools src
