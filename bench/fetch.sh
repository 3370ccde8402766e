#!/bin/bash
# fetch.sh VMBAKE: wall and CPU time of a fetch of 700 MB from loopback, compared with curl and sha256sum of the same files, and of
# the proof of a package of Debian's main archive. Only ratios between lines are meaningful.
set -euo pipefail
vmbake=$(realpath "$1") here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

mkdir -p "$work/out/site/bench.example"
/usr/bin/python3 - "$work" <<'END'
import hashlib, json, os, sys
work, dependencies = sys.argv[1], {}
for number in range(14):
    content = os.urandom(50_000_000)
    open(f"{work}/out/site/bench.example/{number}", "wb").write(content)
    dependencies[f"file-{number:02}"] = {"version": "1", "url": f"https://bench.example/{number}", "type": "binary",
                                         "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
document = {"version": "dev", "kind": "bench", "os": {"name": "debian-13", "arch": "amd64"}, "dependencies": dependencies}
json.dump({"vmconfig": document}, open(f"{work}/manifest.json", "w"))
END
"$here/../tests/harness/upstream/serve.py" "$work/out" --mirrors "$work/mirrors" &
until [ -e "$work/mirrors" ]; do sleep 0.1; done
mirror=$(cat "$work/mirrors")

measure() { "$here/measure.py" "$@"; }
for _ in 1 2; do
    rm -rf "$work/store" "$work/curl"
    mkdir "$work/curl"
    measure "vmbake fetch, 14 files of 50 MB" "$vmbake" fetch bench --manifest "$work/manifest.json" --store "$work/store" --mirror "$mirror"
    measure "curl --parallel, then sha256sum" bash -c "cd '$work/curl' && curl -sS --parallel --remote-name-all '${mirror#*=}[0-13]' && sha256sum *"
done
measure "vmbake fetch, everything there" "$vmbake" fetch bench --manifest "$work/manifest.json" --store "$work/store" --mirror "$mirror"

# The signed index of Debian's main archive, from the host's mirror.
archive=$(apt-get indextargets --format '$(REPO_URI)' | awk '/\/debian\/?$/ {found = $1} END {print found}')
mkdir -p "$work/apt/dists/trixie/main/binary-amd64"
fetch() { curl -sSf -o "$work/apt/$1" --create-dirs "${archive%/}/$1"; }
fetch dists/trixie/InRelease
fetch dists/trixie/main/binary-amd64/Packages.gz
package=$(zcat "$work/apt/dists/trixie/main/binary-amd64/Packages.gz" | awk '$1 == "Package:" {name = $2} $1 == "Filename:" && name == "libpq5" {print $2}')
fetch "$package"
measure "vmbake verify apt: InRelease, Packages, deb" "$vmbake" verify apt --keyring "$here/../trust/debian-archive.asc" --suite trixie \
    --component main --arch amd64 --package libpq5 "$work/apt"
