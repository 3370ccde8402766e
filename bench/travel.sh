#!/bin/bash
# travel.sh VMBAKE BASE STORE: finds oras, then measures transfers of releases: travel.py.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/../tools/cosign.sh"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
find_program oras "$tools" || { echo "oras is missing, and cannot be fetched" >&2; exit 1; }
"$here/travel.py" "$found" "$@"
