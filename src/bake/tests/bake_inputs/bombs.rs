//! Archives that would fill memory or disk: refused by a process that has little of the one.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::process::Command;

use vmbake_compose::stage::{ArchiveLimits, archive};

use super::parts::{chain, compress, file, member, pax, tar};

/// Names the archive to the test when it runs as its own child.
const ARCHIVE: &str = "VMBAKE_TEST_ARCHIVE";

/// The address space of the child, in KiB; reading any of the archives whole would take more.
const MEMORY: u32 = 400_000;

const TERABYTE: u64 = 1 << 40;

/// A header whose size field says `size`, with nothing behind it.
fn claims(kind: u8, name: &str, size: u64) -> Vec<u8> {
    let mut header = tar::Header::from_byte_slice(&member(kind, name.as_bytes(), b"", b"")[..512]).clone();
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Writes `bytes`, and a hole up to a terabyte behind them.
fn with_hole(output: &mut File, bytes: &[u8]) {
    output.write_all(bytes).unwrap();
    output.set_len(TERABYTE).unwrap();
}

/// Ten million entries: a hundred times the same hundred thousand, since they are counted before they are compared.
fn entries(output: &mut File) {
    let block: Vec<u8> = (0..100_000).flat_map(|n| file(&format!("directory/{n}"), "")).collect();
    let packed = compress("gz", &block);
    (0..100).for_each(|_| output.write_all(&packed).unwrap());
}

fn zeros() -> impl Read {
    Cursor::new(claims(b'0', "zeros", 256 << 20)).chain(std::io::repeat(0).take(256 << 20))
}

/// A stream of xz whose block header requires a dictionary of 4 GiB (xz file format, 3.1 and 5.3.1).
fn large_dictionary(output: &mut File) {
    let mut bytes = compress("xz", &tar(&[file("a", "x")]));
    let end = 12 + (usize::from(bytes[12]) + 1) * 4;
    assert_eq!(bytes[14..16], [0x21, 1], "the filter is LZMA2");
    bytes[16] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..end - 4]);
    bytes[end - 4..end].copy_from_slice(&crc.sum().to_le_bytes());
    output.write_all(&bytes).unwrap();
}

type Make = fn(&mut File);

const BOMBS: &[(&str, Make, &str)] = &[
    ("ten million entries", entries, "more than 1000000 members"),
    (
        "a sparse terabyte",
        |output| output.write_all(&claims(b'S', "s", 512)).unwrap(),
        "sparse members are not supported",
    ),
    (
        "a sparse terabyte of pax",
        |output| output.write_all(&tar(&[pax("GNU.sparse.realsize", b"1099511627776"), file("a", "x")])).unwrap(),
        "sparse members are not supported",
    ),
    (
        "a terabyte that is not there",
        |output| output.write_all(&claims(b'0', "a", TERABYTE)).unwrap(),
        "inside member \"a\"",
    ),
    (
        "a name of a terabyte",
        |output| with_hole(output, &claims(b'L', "n", TERABYTE / 2)),
        "extended header of 549755813888 bytes",
    ),
    ("a target of a terabyte", |output| with_hole(output, &claims(b'K', "n", TERABYTE / 2)), "extended header of"),
    ("attributes of a terabyte", |output| with_hole(output, &claims(b'x', "n", TERABYTE / 2)), "extended header of"),
    (
        "global attributes of a terabyte",
        |output| with_hole(output, &claims(b'g', "n", TERABYTE / 2)),
        "extended header of",
    ),
    (
        "a name of a terabyte where only pax looks",
        |output| {
            let hidden = [pax("size", b"0"), claims(b'0', "a", TERABYTE / 2), claims(b'L', "n", TERABYTE / 2)].concat();
            with_hole(output, &hidden);
        },
        "size in an extended header is not supported",
    ),
    (
        "zeros in gzip",
        |output| {
            let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::new(6));
            std::io::copy(&mut zeros(), &mut encoder).unwrap();
            encoder.finish().unwrap();
        },
        "refused as a decompression bomb",
    ),
    (
        "zeros in xz",
        |output| {
            let mut encoder = liblzma::write::XzEncoder::new(output, 0);
            std::io::copy(&mut zeros(), &mut encoder).unwrap();
            encoder.finish().unwrap();
        },
        "refused as a decompression bomb",
    ),
    (
        "zeros in zstd",
        |output| zstd::stream::copy_encode(zeros(), output, 1).unwrap(),
        "refused as a decompression bomb",
    ),
    ("a dictionary of 4 GiB in xz", large_dictionary, "cannot decompress: failed after 0 bytes"),
    (
        "a window of 2 GiB in zstd",
        // RFC 8878, 3.1.1: magic, descriptor, window of 2^(10+21), one empty last block.
        |output| output.write_all(&[0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0]).unwrap(),
        "cannot decompress: failed after 0 bytes",
    ),
];

#[test]
fn are_refused_in_little_memory() {
    if let Some(path) = std::env::var_os(ARCHIVE) {
        let error = archive::open(&File::open(path).unwrap(), &ArchiveLimits::ARTIFACT).map(|_| ()).unwrap_err();
        println!("refused: {}", chain(&error));
        return;
    }
    for (label, make, expected) in BOMBS {
        let mut bomb = tempfile::NamedTempFile::new().unwrap();
        make(bomb.as_file_mut());
        bomb.as_file_mut().seek(SeekFrom::Start(0)).unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["bake_inputs::bombs::are_refused_in_little_memory", "--exact", "--nocapture", "--test-threads=1"])
            .env(ARCHIVE, bomb.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let refused = text.lines().find(|line| line.contains("refused: "));
        assert!(output.status.success(), "{label}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(refused.is_some_and(|line| line.contains(expected)), "{label}: {text}");
    }
}
