# shellcheck shell=bash
# Programs of Debian 13 that older systems lack. Sourced by the checks.

# find_program NAME DIR: sets `found` to the program that $NAME (in capitals) names, to the one of the machine, or to that of Debian 13, whose package of
# the same name is fetched into DIR; fails where none can be had.
find_program() {
    local here conf variable=${1^^}
    here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
    found=${!variable:-$(command -v "$1" || true)}
    [ -z "$found" ] || return 0
    conf=$("$here/base-image/apt-root.sh" "$2/apt" "$(dpkg --print-architecture)") &&
        (cd "$2" && APT_CONFIG=$conf apt-get -qq download "$1") && dpkg-deb -x "$2/$1"_*.deb "$2/root" &&
        found=$2/root/usr/bin/$1
}

# find_cosign DIR: sets `cosign`.
find_cosign() {
    find_program cosign "$1" && cosign=$found
}
