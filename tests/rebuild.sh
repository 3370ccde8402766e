#!/bin/bash
# rebuild.sh VMBAKE BASE OUT NAME STORE: another user, with only the release in OUT, the program and the base, fills an empty store by `vmbake fetch`
# from a mirror on loopback, and bakes the release again: in another folder, as (for root) another user, with one thread. Every output must be the
# same, and signed by a second key the release must satisfy a policy that requires two builders.
set -euo pipefail
vmbake=$(realpath "$1") base=$(realpath "$2") out=$(realpath "$3") name=$4 store=$(realpath "$5")
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server"
    rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"

"$(dirname "$0")/harness/archive_mirror.py" "$out/$name.json" "$store" "$work/mirror"
/usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory "$work/mirror" 0 >"$work/port" 2>"$work/asked" &
server=$!
until grep -qs 'port [0-9]' "$work/port"; do kill -0 "$server" || exit 1; sleep 0.1; done
port=$(grep -o 'port [0-9]*' "$work/port" | cut -d' ' -f2)
mirrors=()
for host in "$work"/mirror/*; do
    mirrors+=(--mirror "https://$(basename "$host")/=http://127.0.0.1:$port/$(basename "$host")/")
done

mkdir "$work/a release"
cp --reflink=auto "$out/$name".* "$out/SHA256SUMS" "$out/FSVERITYSUMS" "$work/a release"
rm -f "$work/a release"/*.sigstore.json
# The lists may name images of other kinds.
sed -i "/  $name\./!d" "$work/a release/SHA256SUMS"
sed -i "/ $name\./!d" "$work/a release/FSVERITYSUMS"
cp "$vmbake" "$work/vmbake"
cp --reflink=auto "$base" "$work/base"
cd "$work"
./vmbake key generate --out first >/dev/null
./vmbake key generate --out second >/dev/null
./vmbake sign "a release" --key first.key >/dev/null
other=()
if [ "$(id -u)" = 0 ]; then
    other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    mkdir -m 700 other
    chown -R 65534:65534 other "a release" second.key
else
    mkdir other
fi
chmod a+r base
asks() { env HOME=/nonexistent TMPDIR="$work/other" TZ=Asia/Kathmandu "${other[@]}" "$work/vmbake" "$@"; }

asks fetch "${name%%.*}" --manifest "a release/$name.json" --store other/store "${mirrors[@]}"
[ "$(grep -c '"GET ' asked)" = "$(find mirror -type l | wc -l)" ] || { echo "FAIL: not every file was asked for once"; cat asked; exit 1; }
echo "ok: an empty store is filled from a mirror, with $(grep -c '"GET ' asked) requests for as many files"
kill "$server"
server=

asks verify image "a release" --key first.pub --store other/store --base base --rebuild --jobs 1 \
    --sign second.key --builder-id https://rebuild.example.net >said
cat said
[ "$(grep -c 'rebuild .*identical$' said)" = "$(($(wc -l <"a release/SHA256SUMS") + $(wc -l <"a release/FSVERITYSUMS") - 1))" ]
[ "$(grep -c '^signed ' said)" = 3 ]
echo "ok: another user bakes the release again in another folder: every output is the same"

cat >policy.json <<'END'
{"format": 1, "builders": ["urn:vmbake:builder", "https://rebuild.example.net"], "keys": {"require": 2, "of": ["first.pub", "second.pub"]}}
END
asks verify image "a release" --policy policy.json --store other/store >said || { cat said; exit 1; }
rm "a release"/*.rebuild.sigstore.json
! asks verify image "a release" --policy policy.json --store other/store >said
grep -q 'signed by 1 of the required 2 signers' said
echo "ok: a policy that demands two builders is satisfied by both, and by no less"
