# Common code of the methods that work on a raw disk; sourced.

# grown BASE SIZE DISK: the base as a raw disk of that size, its first partition up to the end; sets `start` and `length` of that, in sectors.
grown() {
    qemu-img convert -O raw "$1" "$3"
    truncate -s "$2" "$3"
    local info
    info=$(sgdisk -i 1 "$3")
    start=$(sed -n 's/^First sector: \([0-9]*\).*/\1/p' <<<"$info")
    sgdisk --move-second-header --delete 1 --new "1:$start:0" --typecode "1:$(sed -n 's/^Partition GUID code: \([^ ]*\).*/\1/p' <<<"$info")" \
        --partition-guid "1:$(sed -n 's/^Partition unique GUID: //p' <<<"$info")" "$3" >/dev/null
    length=$(sgdisk -i 1 "$3" | sed -n 's/^Partition size: \([0-9]*\) sectors.*/\1/p')
}

# compressed DISK OUT: as qcow2, in the faster of its two compressions.
compressed() { qemu-img convert -c -O qcow2 -o compression_type=zstd "$1" "$2"; }
