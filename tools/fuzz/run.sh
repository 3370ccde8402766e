#!/bin/bash
# run.sh SECONDS [TARGET]...: runs all fuzz targets, or the given ones, for SECONDS each. Crashes are written to
# src/<crate>/fuzz/artifacts, with the command that reproduces them.
#
# Seeds are files of this repository, and files created by other tools, since random input is not a volume or an archive. There are also a few
# short inputs that earlier runs found beyond those, in src/<crate>/fuzz/seeds. A target gets no more than 2 GiB, and may ask for no more
# than 256 MiB at once, which detects unchecked lengths. No sanitizers are used: our code has no unsafe blocks, and
# without one there are two to three times as many inputs.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
shift
export RUSTC_BOOTSTRAP=1 RUSTC_WORKSPACE_WRAPPER='' PATH=$PATH:/usr/sbin LC_ALL=C.UTF-8
command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
seeds=$PWD/target/fuzz-seeds
rm -rf "$seeds"

# Target, crate, and longest input in bytes.
targets() {
    cat <<END
env firstboot 4096
plan firstboot 4096
template firstboot 4096
tables firstboot 4096
tar vmbake 65536
deb vmbake 65536
packages vmbake 16384
catalogue vmbake 16384
in_release vmbake 16384
elf vmbake 16384
oci vmbake 8192
archive vmbake 16384
release vmbake 8192
layer vmbake 8192
profile vmbake 16384
manifest vmbake 16384
sources vmbake 16384
scripts vmbake 4096
qcow2 disk 1048576
gpt disk 131072
fat disk 2300000
ext4 disk 524288
shell shell 4096
bash shell 4096
END
}

archives() {
    local work=$seeds/work
    mkdir -p "$work/a/b" "$work/holes" "$work/package/DEBIAN" "$work/package/etc"
    echo text >"$work/a/file"
    ln -s file "$work/a/link"
    ln "$work/a/file" "$work/a/b/other"
    truncate -s 100000 "$work/holes/sparse"
    for format in gnu pax ustar v7; do
        tar -C "$work" --owner=0 --group=0 --mtime=@1 --format=$format -cf "$seeds/tar/$format" a
    done
    tar -C "$work" --format=gnu --sparse -cf "$seeds/tar/sparse" holes/sparse
    tar -C "$work" --format=pax --transform "s,^a,$(printf 'long/%.0s' {1..40})," -cf "$seeds/tar/long" a/file
    gzip -c "$seeds/tar/gnu" >"$seeds/tar/gz"
    xz -c "$seeds/tar/gnu" >"$seeds/tar/xz"
    zstd -qc "$seeds/tar/gnu" >"$seeds/tar/zst"
    bzip2 -c "$seeds/tar/gnu" >"$seeds/tar/bz2"
    (cd "$work" && zip -qryX - a) >"$seeds/tar/zip"
    (cd "$work" && zip -qryX0 - a) >"$seeds/tar/stored.zip"
    printf 'Package: a\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@b>\nDescription: a\n b\n' >"$work/package/DEBIAN/control"
    echo /etc/a >"$work/package/DEBIAN/conffiles"
    echo a >"$work/package/etc/a"
    for format in none gzip xz; do
        dpkg-deb --root-owner-group -Z$format -b "$work/package" "$seeds/deb/$format" >/dev/null
    done
    cp "$work/package/DEBIAN/control" "$seeds/deb/control"
    rm -r "$work"
}

texts() {
    local data=src/vmbake/tests/data
    printf '\0Package: runc\nVersion: 1.1-2\nArchitecture: amd64\nFilename: pool/r.deb\nSize: 1\nSHA256: %064d\n\nPackage: a\nVersion: 2\n' 0 >"$seeds/packages/plain"
    { printf '\1' && tail -c +2 "$seeds/packages/plain" | gzip; } >"$seeds/packages/gz"
    { printf '\2' && tail -c +2 "$seeds/packages/plain" | xz; } >"$seeds/packages/xz"
    { printf 'dpkg tar=1.*\0Package: a\nStatus: install ok installed\nVersion: 1\nDepends: b | v (>= 1)\nProvides: v (= 2), w\n\0' &&
        dpkg --status dpkg tar libacl1 libselinux1; } >"$seeds/catalogue/dpkg"
    printf 'a b\0\0Package: a\nVersion: 1\nArchitecture: all\nDepends: c:any (<< 2), d | v\nBreaks: e\n\nPackage: d\nVersion: 1~\nArchitecture: amd64\nProvides: v\nSource: s (3)\n' >"$seeds/catalogue/plain"
    head -c 16000 $data/apt/trixie-updates.InRelease >"$seeds/in_release/signed"
    sed '1,/^$/d;/^-----BEGIN PGP SIG/,$d' $data/apt/trixie-updates.InRelease >"$seeds/in_release/whole"
    head -c 16000 "$seeds/in_release/whole" >"$seeds/in_release/text"
    rm "$seeds/in_release/whole"
    cp trust/fluentbit.asc "$seeds/in_release/key"
    cp manifests/*.amd64.json "$seeds/manifest"
    cp manifests/sources.json "$seeds/sources"
    printf 'A=b\nB="c d"\n' >"$seeds/env/plain"
    printf "A='it'\"'\"'s'\n#\n" >"$seeds/env/quotes"
    local index='{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"@d","size":@s,"platform":{"os":"linux","architecture":"amd64"}}]}'
    local manifest='{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"@d","size":@s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"@d","size":@s}]}'
    local config
    config='{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":["sha256:'$(printf %064d 0)'"]}}'
    printf '%s\0%s\0%s' "$index" "$manifest" "$config" >"$seeds/oci/index"
    printf '%s\0%s' "$manifest" "$config" >"$seeds/oci/manifest"
    local blob='"size":@s,"digest":"@d"'
    printf '\1{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.vmbake.images.v1",%s}]}\0%s\0{}' \
        "$blob" '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.vmbake.images.v1","config":{"mediaType":"application/vnd.oci.empty.v1+json",'"$blob"'},"layers":[{"mediaType":"application/vnd.vmbake.sidecar.v1","annotations":{"org.opencontainers.image.title":"a.json"},'"$blob"'}]}' >"$seeds/archive/layout"
    { printf '\0' && cat "$seeds/tar/ustar"; } >"$seeds/archive/tar"
    printf '\0{"format":1,"builders":["urn:a"],"keys":{"require":1,"of":["a.pub"]},"max_index_age_days":{"debian":3}}' >"$seeds/release/policy"
    { printf '\1' && sha256sum manifests/*.json | sed 's,manifests/,,'; } >"$seeds/release/sums"
    { printf '\2' && openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt; } >"$seeds/release/key"
    local zero
    zero=sha256:$(printf %064d 0)
    printf '\3{"schema":"vmbake.delta.v1","base":{"name":"a.raw","format":"raw","disk_length":1,"disk_fsverity":"%s"},"result":{"name":"b.qcow2","format":"qcow2","disk_length":1,"disk_fsverity":"%s","sha256":"%s"},"delta":{"name":"d","length":1,"sha256":"%s"}}' \
        "$zero" "$zero" "$zero" "$zero" >"$seeds/release/statement"
    local layer
    for layer in layers/*/layer.json; do
        cp "$layer" "$seeds/layer/$(basename "$(dirname "$layer")")"
    done
    cp examples/profiles/debian.yaml "$seeds/profile/debian"
    cat >"$seeds/scripts/debhelper" <<'END'
#!/bin/sh
set -e
case "$1" in
configure) true ;;
esac
# Automatically added by dh_installsystemd/13.24.2
if [ "$1" = "configure" ] || [ "$1" = "abort-upgrade" ] ; then
	if deb-systemd-helper --quiet was-enabled 'a.service'; then
		deb-systemd-helper enable 'a.service' >/dev/null || true
	fi
fi
if [ -x "$(command -v systemd-tmpfiles)" ]; then
	systemd-tmpfiles ${DPKG_ROOT:+--root="$DPKG_ROOT"} --create a.conf || true
fi
dpkg-maintscript-helper rm_conffile /etc/d 2.13.1-2\~ -- "$@"
update-alternatives --install /usr/bin/x x /usr/bin/y 10 \
    --slave /usr/man/x x.1 /usr/man/y
# End automatically added section
END
    printf 'if dpkg --compare-versions "$2" lt "1.2~" && [ -n "$(a "b")" ]; then # c\n\ta\nelse\n\texit 0\nfi\n' >"$seeds/scripts/branches"
}

# Snippets that dash judges, generated programs, and a script of debhelper.
shells() {
    local snippet dialect
    for dialect in dash bash; do
        target/release/examples/generated --print --dialect $dialect --programs 300 |
            csplit -s -z -n 3 -f "$seeds/${dialect/dash/shell}/generated" - '/^=== /' '{*}'
    done
    sed -i 1d "$seeds"/{shell,bash}/generated*
    csplit -s -z -n 3 -f "$seeds/shell/snippet" <(cat src/shell/tests/snippets/*.txt) '/^=== /' '{*}'
    for snippet in "$seeds"/shell/snippet*; do sed -i 1d "$snippet"; done
    cp "$seeds/scripts/debhelper" "$seeds/shell/debhelper"
}

disks() {
    # Volumes with few inodes, so that mutations meet one.
    local volume=0 options
    for options in 'ext2 -b 1024' 'ext4 -b 1024 -O inline_data,ea_inode,^metadata_csum,^has_journal' \
        'ext4 -b 1024 -O meta_bg,^resize_inode,^metadata_csum,^has_journal -g 256'; do
        # shellcheck disable=SC2086
        mke2fs -q -F -t $options -N 32 -d manifests "$seeds/ext4/$((++volume))" 512 >/dev/null
    done
    for options in 12 16; do
        truncate -s $((options == 12 ? 128 : 2200))K "$seeds/fat/$options"
        mkfs.vfat -F $options -s 1 -i 1 "$seeds/fat/$options" >/dev/null
        mmd -i "$seeds/fat/$options" ::/a-long-name-of-a-folder
        mcopy -i "$seeds/fat/$options" manifests/README.md ::/a-long-name-of-a-folder/a-long-name
    done
    truncate -s 100K "$seeds/gpt/disk"
    sgdisk --disk-guid=R -a 1 -n 1:40:60 -n 15:61:80 -t 15:EF00 "$seeds/gpt/disk" >/dev/null
    head -c 50000 /bin/bash >"$seeds/raw"
    truncate -s 300K "$seeds/raw"
    for options in compat=0.10 compat=1.1,cluster_size=4k compat=1.1,compression_type=zstd compat=1.1,extended_l2=on; do
        qemu-img convert -f raw -O qcow2 -o "$options" "$seeds/raw" "$seeds/qcow2/$options"
        [[ $options == *extended* ]] || qemu-img convert -c -f raw -O qcow2 -o "$options" "$seeds/raw" "$seeds/qcow2/$options-c"
    done
    # An overlay, like a delta: its relative backing file is not read.
    cp "$seeds/raw" "$seeds/qcow2/under"
    (cd "$seeds/qcow2" && qemu-img create -q -f qcow2 -F raw -b under -o compression_type=zstd overlay && qemu-io -c 'write -c -P 7 0 64k' -c 'write -z 64k 64k' overlay >/dev/null)
    rm "$seeds/qcow2/under"
    rm "$seeds/raw"
}

programs() {
    head -c 16384 /bin/true >"$seeds/elf/program"
    printf 'int main(void) { return 0; }' | gcc -s -Wl,-z,noseparate-code -o "$seeds/elf/small" -x c -
}

while read -r target _; do mkdir -p "$seeds/$target"; done < <(targets)
archives
texts
shells
disks
programs
# One target, its crate, its longest input.
fuzz_one() {
    local target=$1 fuzz=src/$2/fuzz length=$3 log=$seeds/$1.log
    mkdir -p "$fuzz/corpus/$target"
    [ ! -d "$fuzz/seeds/$target" ] || cp "$fuzz/seeds/$target"/* "$seeds/$target"
    if cargo fuzz run --sanitizer none --fuzz-dir "$fuzz" --target-dir target/fuzz "$target" "$fuzz/corpus/$target" "$seeds/$target" -- \
        -max_total_time="$seconds" -max_len="$length" -rss_limit_mb=2048 -malloc_limit_mb=256 -timeout=20 -print_final_stats=1 >"$log" 2>&1 </dev/null; then
        echo "ok    $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, $(sed -n 's/^stat::peak_rss_mb: *//p' "$log") MiB"
    else
        echo "FAIL  $target"
        tail -40 "$log"
        return 1
    fi
}
export -f fuzz_one
export seconds seeds

wanted=$(targets | while read -r target rest; do
    [ $# -eq 0 ] || [[ " $* " == *" $target "* ]] || continue
    echo "$target $rest"
done)
for crate in $(cut -d' ' -f2 <<<"$wanted" | sort -u); do
    cargo fuzz build --sanitizer none --fuzz-dir "src/$crate/fuzz" --target-dir target/fuzz
done
xargs -P "$(nproc)" -L 1 bash -c 'fuzz_one "$@"' fuzz_one <<<"$wanted"
