#!/bin/bash
# bare_root.sh ARCH IMAGE: tests program and package in /asked, within a minimal Debian root; test_dist.py puts it there. The expected output is next to it.
set -euo pipefail
cd /asked
arch=$1 image=$2
fail() { echo "FAIL: $*" >&2; exit 1; }
for tool in cargo rustc cc ld man; do
    ! command -v "$tool" >/dev/null || fail "$tool is here: this root is not bare"
done

program=$(echo ./vmbake-*-"$arch")
same() { # FILE ARGUMENT...: the program says what the file has. How much of a disk a copy of an image takes is not asked.
    "$program" "${@:2}" >said || fail "${*:2}: status $?"
    diff <(grep -v '"allocated"' "$1") <(grep -v '"allocated"' said) || fail "${*:2}"
    echo "ok: ${*:2}: as the ordinary program"
}
same version --version --json
same layers layer list
same inspected inspect "$image" --json
! "$program" inspect /etc/passwd >said 2>&1 || fail "/etc/passwd was accepted as an image"
grep -q /etc/passwd said || fail "the error does not name the file"

before=$(find / -xdev \( -path /asked -o -path /proc -o -path /sys -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort)
dpkg --install ./vmbake_*_"$arch.deb" >/dev/null
[ -z "$(dpkg --audit; dpkg --verify vmbake)" ] || fail "dpkg finds faults in what it installed"
cmp "$program" "$(command -v vmbake)" || fail "the package has another program"
# A man page of each command that the program has, or of those below it.
commands=$(vmbake --help | sed -n '/^Options:/q;s/^  \([a-z-]\+\)  .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 30 ] || fail "no list of commands"
for command in $commands; do
    [ "$command" = help ] || gzip -dc /usr/share/man/man1/vmbake-"$command"[.-]*gz | grep '^\.TH' >/dev/null || fail "no man page of $command"
done
bash -c '. /usr/share/bash-completion/completions/vmbake && complete -p vmbake' >/dev/null || fail "bash does not take the completions"
head -n 1 /usr/share/zsh/vendor-completions/_vmbake | grep -qx '#compdef vmbake' || fail "completions of zsh"
grep -q '^complete -c vmbake' /usr/share/fish/vendor_completions.d/vmbake.fish || fail "completions of fish"
for name in copyright changelog.gz changelog.Debian.gz third-party.txt.gz; do
    [ -s "/usr/share/doc/vmbake/$name" ] || fail "$name is missing"
done
echo "ok: the package installs, with man pages, completions and licences"
dpkg --purge vmbake >/dev/null
after=$(find / -xdev \( -path /asked -o -path /proc -o -path /sys -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort)
[ "$before" = "$after" ] || fail "left behind: $(diff <(echo "$before") <(echo "$after"))"
echo "ok: nothing is left once it is purged"
