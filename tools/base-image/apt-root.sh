#!/bin/bash
# apt-root.sh DIR ARCH [SUITE]: creates a separate apt configuration in DIR, for Debian 13 (or SUITE) of ARCH with no installed
# packages, updates its lists and prints the path for APT_CONFIG. Does not modify the host's apt configuration, but reads
# the archive's location from it; DEBIAN_MIRROR overrides that.
set -euo pipefail
dir=$(realpath -m "$1") arch=$2 suite=${3:-trixie}

mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | sort | uniq -c | sort -rn |
    awk '$2 ~ /\/debian\/?$/ {print $2; exit}')}
[ -n "$mirror" ] || { echo "no Debian archive in apt's sources: set DEBIAN_MIRROR or run apt-get update" >&2; exit 1; }

mkdir -p "$dir"/{state/lists/partial,cache/archives/partial}
: >"$dir/status"
echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$dir/sources.list"
cat >"$dir/conf" <<END
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::State "$dir/state";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Debug::NoLocking "true";
// A mirror may lag behind in unstable, whose index is valid for a week.
Acquire::Check-Valid-Until "$([ "$suite" = trixie ] && echo true || echo false)";
END
APT_CONFIG="$dir/conf" apt-get -qq update >&2
echo "$dir/conf"
