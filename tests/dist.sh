#!/bin/bash
# dist.sh PACKAGES VMBAKE IMAGE: runs the programs and Debian packages that `make dist` wrote into PACKAGES, in bare roots of Debian 12 and 13
# for amd64 and arm64, without a compiler and without libraries beyond the base system: dist-root.sh tests them there. Their output for IMAGE must
# equal that of VMBAKE, the ordinary program. Other architectures run by qemu-user. lintian of Debian 13 checks the packages.
set -euo pipefail
export LC_ALL=C.UTF-8
checks=$(dirname "$(realpath "$0")")
packages=$(realpath "$1") vmbake=$(realpath "$2") image=$(realpath "$3")
command -v mmdebstrap >/dev/null || { echo "mmdebstrap is missing" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

(cd "$packages" && sha256sum --check --quiet SHA256SUMS)
[ "$(cd "$packages" && ls)" = "$(awk '{print $2} END {print "SHA256SUMS"}' "$packages/SHA256SUMS" | sort)" ]
echo "ok: SHA256SUMS names every file"
mkdir "$work/asked"
cp "$checks/dist-root.sh" "$work/asked/root.sh"
"$vmbake" --version --json >"$work/asked/version"
"$vmbake" layer list >"$work/asked/layers"
"$vmbake" inspect "$image" --json >"$work/asked/inspected"

# root SUITE ARCH OPTION...: makes a root in which a last hook runs; nothing of it is kept.
root() {
    local suite=$1 arch=$2
    "$checks/../tools/base-image/apt-root.sh" "$work/$suite-$arch" "$arch" "$suite" >/dev/null
    mmdebstrap --quiet --variant=minbase --architectures="$arch" --aptopt='APT::Install-Recommends "false"' \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg --format=null "${@:3}" \
        "$suite" /dev/null - <"$work/$suite-$arch/sources.list" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
    grep '^ok: ' "$work/said" | sed "s/^ok: /ok: $suite $arch: /"
}

for arch in amd64 arm64; do
    if [ "$arch" != "$(dpkg --print-architecture)" ] && ! said=$("$checks/../base/binfmt.sh" "$arch" 2>&1); then
        skip "dist $arch" "$said"
        continue
    fi
    for suite in bookworm trixie; do
        root "$suite" "$arch" --customize-hook="copy-in $work/asked /" \
            --customize-hook="copy-in $(echo "$packages"/vmbake-*-"$arch") $(echo "$packages"/vmbake_*_"$arch.deb") $image /asked" \
            --customize-hook="chroot \"\$1\" /bin/bash /asked/root.sh $arch $(basename "$image")"
    done
done
root trixie "$(dpkg --print-architecture)" --include=lintian --customize-hook="copy-in $packages /" \
    --customize-hook="chroot \"\$1\" sh -c 'lintian --allow-root --fail-on error,warning --display-level \">=warning\" /$(basename "$packages")/*.deb'" \
    --customize-hook='echo "ok: lintian finds no error and no warning in the packages"'
