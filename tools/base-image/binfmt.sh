#!/bin/bash
# binfmt.sh ARCH: makes the kernel run programs of ARCH by qemu-user, also in a chroot (flag F), until the machine is shut
# down. Does nothing, and needs no root, where it does already, such as with Debian's packages binfmt-support and qemu-user-static.
set -euo pipefail
arch=$1
case $arch in
    arm64) cpu=aarch64 machine='\xb7' ;;
    amd64) cpu=x86_64 machine='\x3e' ;;
    *) echo "binfmt.sh does not know architecture $arch" >&2; exit 2 ;;
esac
formats=/proc/sys/fs/binfmt_misc
[ ! -e "$formats/qemu-$cpu" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "programs of $arch do not run here: install binfmt-support and qemu-user-static, or be root" >&2; exit 1; }
[ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats"
# The head of a 64-bit little-endian ELF program, EXEC or DYN, of that machine (elf.h); what the mask lacks does not matter.
head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'$machine'\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
# echo writes the escapes as they are: the kernel reads them itself.
echo -E ":qemu-$cpu:M::$head:$mask:$(command -v "qemu-$cpu-static"):OCF" >"$formats/register"
