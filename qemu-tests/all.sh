#!/bin/bash
# all.sh: what boots in qemu, from the images in $OUT and target/kinds. `make test-boot-all` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
vmbake=target/release/vmbake store=target/store base=$(cat target/base-path) node=node.$OS.amd64
manifest=target/manifests/$node.json
boot() { "$vmbake" boot "$1" --network isolated --timeout 1200 --check "unit=$2,no-failed-units"; }
make="make --no-print-directory"

$make bake KIND=node ARCH=arm64 BASE=
command -v dockerd >/dev/null || apt-get -qq install -y --no-install-recommends docker.io
pytest --quiet -k 'revision or by_daemon or merges_extensions or bundles_boot or commands_with_machines or examples_boot or profiles_boot and not compared or dev_sync'
tests/harness/upstream/bake.py "$vmbake" "$(cat target/base-path.arm64)" arm64
for kind in knd knc; do boot "target/kinds/$kind.$OS.arm64.raw" containerd.service; done
boot "target/kinds/k3s.$OS.amd64.raw" k3s.service
$make bake KIND=node OS=debian-12 BASE="$(tools/base-image/build.sh --suite bookworm --also netbase)"
boot "$OUT/node.debian-12.amd64.raw" containerd.service
qemu-tests/run.py --images "$OUT" --images target/kinds
qemu-tests/powercut.py target/kinds/knc.$OS.amd64.raw
