#!/bin/bash
# deb.sh ARCH VERSION PROGRAM TEXTS OUT: writes vmbake_VERSION-1_ARCH.deb into OUT. TEXTS holds the completions of bash, zsh and fish, the pages
# in man/, and third-party.txt. Every time in the package is SOURCE_DATE_EPOCH, so that the same files give the same bytes with the same dpkg.
set -euo pipefail
arch=$1 version=$2 program=$(realpath "$3") texts=$(realpath "$4") out=$(realpath "$5")
cd "$(dirname "$0")/../.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
put() { install -D -m 0644 "$1" "$root/$2"; }
zipped() { mkdir -p "$(dirname "$root/$2")" && gzip -9n <"$1" >"$root/$2" && chmod 0644 "$root/$2"; }
maintainer="The vmbake maintainers <vmbake@users.noreply.github.com>"

install -D -m 0755 "$program" "$root/usr/bin/vmbake"
for page in "$texts"/man/*.1; do zipped "$page" "usr/share/man/man1/$(basename "$page").gz"; done
put "$texts/bash" usr/share/bash-completion/completions/vmbake
put "$texts/zsh" usr/share/zsh/vendor-completions/_vmbake
put "$texts/fish" usr/share/fish/vendor_completions.d/vmbake.fish

doc=usr/share/doc/vmbake
zipped CHANGELOG.md $doc/changelog.gz
zipped "$texts/third-party.txt" $doc/third-party.txt.gz
zipped /dev/stdin $doc/changelog.Debian.gz <<END
vmbake ($version-1) unstable; urgency=medium

  * Package of version $version. See changelog.gz for what it changes.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
END
cat >"$root/$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vmbake
Comment: third-party.txt.gz has the licences of what is linked into the program.

Files: *
Copyright: $(date --utc +%Y --date="@$SOURCE_DATE_EPOCH") The authors of vmbake
License: Apache-2.0
 On Debian systems, the text of the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.
END
mkdir -p "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/vmbake" <<END
# On purpose: it runs on any release of Debian, and in a container without any library.
vmbake: statically-linked-binary [usr/bin/vmbake]
vmbake: embedded-library *[usr/bin/vmbake]
# Such a program that can be loaded anywhere (static-pie) has the form of a shared library.
vmbake: shared-library-lacks-prerequisites [usr/bin/vmbake]
# It writes the database of the images that it bakes, never the machine's.
vmbake: uses-dpkg-database-directly [usr/bin/vmbake]
# Not uploaded to Debian.
vmbake: initial-upload-closes-no-bugs *
END

size=$(cd "$root" && find . -type f -printf '%s\n' | awk '{kib += int(($1 + 1023) / 1024)} END {print kib}')
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: vmbake
Version: $version-1
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $size
Section: admin
Priority: optional
Recommends: ca-certificates
Suggests: qemu-system-$([ "$arch" = arm64 ] && echo arm || echo x86), qemu-utils
Description: bakes golden disk images without root
 vmbake turns a Debian cloud image and a pinned manifest into a disk image, raw
 and qcow2, as an ordinary user: without mounts, loop devices, chroots and
 virtual machines. The same inputs give the same bytes, and every artifact is
 verified before it is unpacked.
 .
 It also looks into disk images, says where each file in them came from, and
 boots them in qemu.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 0644 "$root"/DEBIAN/* "$root/$doc/copyright" "$root/usr/share/lintian/overrides/vmbake"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/vmbake_$version-1_$arch.deb" >/dev/null
