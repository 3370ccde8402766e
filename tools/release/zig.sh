#!/bin/bash
# zig.sh DIR: puts the C compiler of the static programs into DIR, from a pinned wheel, and prints the settings with which cargo compiles C for both
# musl targets by it. One compiler with headers for every target gives the same bytes on every machine, whichever gcc that has.
set -euo pipefail
dir=$1 version=0.15.2
mkdir -p "$dir"
cat >"$dir/requirements.txt" <<END
ziglang==$version \\
    --hash=sha256:806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130 \\
    --hash=sha256:edc0aa60ec964a4cf462d40f68d7de242ddf37fd9a80f2afaee6397059463230
END
[ "$("$dir/ziglang/zig" version 2>/dev/null)" = "$version" ] ||
    /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: --require-hashes \
        --upgrade --target "$dir" --requirement "$dir/requirements.txt" >&2

# Cargo names a target as Rust does, zig otherwise: its name comes from here. Paths of this machine are in messages of failed assertions.
# Sanitizers, which zig adds where code is not optimized, have no library here.
wrapper() {
    cat >"$dir/$1" <<END
#!/bin/bash
export ZIG_GLOBAL_CACHE_DIR='$dir/cache' ZIG_LOCAL_CACHE_DIR='$dir/cache'
$2
END
    chmod 755 "$dir/$1"
}
wrapper ar "exec '$dir/ziglang/zig' ar \"\$@\""
for cpu in x86_64 aarch64; do
    wrapper "cc-$cpu" "kept=()
for argument; do [[ \$argument == --target=* ]] || kept+=(\"\$argument\"); done
exec '$dir/ziglang/zig' cc -target $cpu-linux-musl -fno-sanitize=undefined '-ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=cargo' '-ffile-prefix-map=$PWD=.' \"\${kept[@]}\""
    echo "CC_${cpu}_unknown_linux_musl=$dir/cc-$cpu"
    echo "AR_${cpu}_unknown_linux_musl=$dir/ar"
done
