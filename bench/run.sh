#!/bin/bash
# run.sh NAME VMBAKE BASE STORE IMAGE.raw: one measurement. `table`, `travel` and `publish` fail if a limit is exceeded.
set -euo pipefail
name=$1 vmbake=$2 base=$3 store=$4 image=$5
cd "$(dirname "$0")/.."
case $name in
table) bench/table.py "$vmbake" "$base" --arm64 "$(tools/base-image/foreign.sh arm64)" ;;
growth) bench/growth.py "$vmbake" "$base" ;;
# A crate outside of the workspace, built separately.
parts) cargo bench --quiet --manifest-path src/bench/Cargo.toml --target-dir target ;;
travel) bench/travel.sh "$vmbake" "$base" "$store" ;;
publish) bench/publish.py "$vmbake" "$image" ;;
boot)
    bench/fetch.sh "$vmbake"
    bench/firstboot.py target/firstboot/amd64/firstboot
    bench/boot.py "$vmbake" "$base"
    ;;
*) echo "$name: none of table, growth, parts, travel, publish, boot" >&2 && exit 2 ;;
esac
