# shellcheck shell=bash
# find_cosign DIR: sets `cosign` to the program that COSIGN names, to the one of the machine, or to that of Debian 13, which is fetched into DIR; fails
# where none can be had. Sourced by the checks.
find_cosign() {
    local here conf
    here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
    cosign=${COSIGN:-$(command -v cosign || true)}
    [ -z "$cosign" ] || return 0
    conf=$("$here/base/apt-root.sh" "$1/apt" "$(dpkg --print-architecture)") &&
        (cd "$1" && APT_CONFIG=$conf apt-get -qq download cosign) && dpkg-deb -x "$1"/cosign_*.deb "$1/root" &&
        cosign=$1/root/usr/bin/cosign
}
