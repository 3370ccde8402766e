//! qcow2 images that are refused, truncated or mutated: errors that say where, no panic, no large allocation.

use std::path::{Path, PathBuf};

use crate::image_tools::{arg, have, mixed, noise, run};
use proptest::prelude::*;
use tempfile::TempDir;
use vmbake_disk::image::{Image, ImageError, Qcow2Structure};
use vmbake_disk::source::ReadAt;

/// A small handcrafted image: 512-byte clusters, version 3, one L2 table. Header, L1 table, L2 table, data, compressed
/// data.
fn small(compression: u8) -> Vec<u8> {
    let mut image = vec![0; 5 * 512];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\0\0\0\x03");
    put(20, &9u32.to_be_bytes());
    put(24, &(6u64 * 512).to_be_bytes());
    put(36, &1u32.to_be_bytes());
    put(40, &512u64.to_be_bytes());
    put(72, &(u64::from(compression) << 3).to_be_bytes());
    put(96, &4u32.to_be_bytes());
    put(100, &112u32.to_be_bytes());
    put(104, &[compression]);
    put(512, &(1024u64 | 1 << 63).to_be_bytes());
    let data = 1536u64;
    for (i, entry) in [data | 1 << 63, 0, 1, data | 1, 2048 | 1 << 62, data].into_iter().enumerate() {
        put(1024 + i * 8, &entry.to_be_bytes());
    }
    put(1536, &noise(3, 512));
    let packed = match compression {
        0 => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            std::io::Write::write_all(&mut encoder, &[7; 512]).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::bulk::compress(&[7; 512], 3).unwrap(),
    };
    put(2048, &packed);
    image
}

fn small_disk() -> Vec<u8> {
    let data = noise(3, 512);
    [&data[..], &[0; 3 * 512], &[7; 512], &data].concat()
}

fn write(dir: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join("image.qcow2");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Opens and reads as much as is sensible. Whatever happens, it must not panic or take long.
fn exercise(path: &Path) -> Result<Vec<u8>, String> {
    let image = Image::open(path).map_err(|error| error.to_string())?;
    let mut at = 0;
    for _ in 0..100 {
        match image.next_data(at) {
            Ok(Some(data)) => at = data.end,
            Ok(None) | Err(_) => break,
        }
    }
    let mut disk = vec![0; usize::try_from(image.len().min(1 << 20)).unwrap()];
    let tail = image.len() - disk.len() as u64;
    image.read_exact_at(&mut disk, tail).map_err(|error| error.to_string())?;
    image.read_exact_at(&mut disk, 0).map_err(|error| error.to_string())?;
    Ok(disk)
}

#[test]
fn the_small_image_is_sound() {
    let dir = TempDir::new().unwrap();
    for compression in [0, 1] {
        let path = write(&dir, &small(compression));
        crate::image_tools::assert_reads(&Image::open(&path).unwrap(), &small_disk(), "small");
    }
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    for (at, bytes, words) in [
        (4, &[0, 0, 0, 1][..], "version 1"),
        (4, &[0, 0, 0, 4], "version 4"),
        (8, &[0, 0, 0, 0, 0, 0, 2, 0], "a backing file"),
        (32, &[0, 0, 0, 1], "encryption"),
        (32, &[0, 0, 0, 2], "encryption"),
        (72, &[0, 0, 0, 0, 0, 0, 0, 2], "the corrupt bit"),
        (72, &[0, 0, 0, 0, 0, 0, 0, 4], "an external data file"),
        (72, &[0, 0, 0, 0, 0, 0, 0, 16], "extended L2"),
        (72, &[0x80, 0, 0, 0, 0, 0, 0, 0], "unknown incompatible features 0x8000000000000000"),
    ] {
        let mut image = small(0);
        image[at..at + bytes.len()].copy_from_slice(bytes);
        let error = Image::open(&write(&dir, &image)).unwrap_err();
        assert!(matches!(error, ImageError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(words) && error.to_string().contains("qemu-img"), "{error}");
    }
    let mut image = small(1);
    image[104] = 2;
    let error = Image::open(&write(&dir, &image)).unwrap_err();
    assert!(matches!(error, ImageError::Unsupported { .. }) && error.to_string().contains("type 2"), "{error}");
}

#[test]
fn a_dirty_image_is_read() {
    let dir = TempDir::new().unwrap();
    let mut image = small(0);
    image[79] |= 1;
    assert_eq!(exercise(&write(&dir, &image)).unwrap(), small_disk());
}

#[test]
fn corruption_is_reported_with_its_offset() {
    let dir = TempDir::new().unwrap();
    for (at, bytes, part, offset) in [
        (20, &[0, 0, 0, 8][..], Qcow2Structure::ClusterBits, 0x14),
        (20, &[0, 0, 0, 22], Qcow2Structure::ClusterBits, 0x14),
        (20, &[0xff; 4], Qcow2Structure::ClusterBits, 0x14),
        (24, &[0xff; 8], Qcow2Structure::Size, 0x18),
        (24, &[0, 0, 0, 0, 0, 0, 0x0b, 0x9c], Qcow2Structure::Size, 0x18),
        (24, &[0, 0, 0, 0, 0, 0x10, 0, 0], Qcow2Structure::L1Size, 0x24),
        (32, &[0, 0, 0, 3], Qcow2Structure::CryptMethod, 0x20),
        (36, &[0, 0, 0, 0], Qcow2Structure::L1Size, 0x24),
        (36, &[0, 0x40, 0, 1], Qcow2Structure::L1Size, 0x24),
        (40, &[0, 0, 0, 0, 0, 0, 2, 8], Qcow2Structure::L1TableOffset, 0x28),
        (40, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0], Qcow2Structure::L1TableOffset, 0x28),
        (100, &[0, 0, 0, 72], Qcow2Structure::HeaderLength, 0x64),
        (100, &[0, 0, 2, 8], Qcow2Structure::HeaderLength, 0x64),
        (104, &[1], Qcow2Structure::CompressionType, 0x68),
        (512, &[0x80, 0, 0, 0, 0, 0, 4, 1], Qcow2Structure::L1Entry, 0x200),
        (512, &[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0], Qcow2Structure::L2Table, 0xfffffffffffe00),
        (1024, &[0, 0, 0, 0, 0, 0, 6, 2], Qcow2Structure::L2Entry, 0x400),
        (1024, &[0x80, 0, 0, 0, 0, 0, 0x0a, 0], Qcow2Structure::DataCluster, 0xa00),
        (1056, &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Qcow2Structure::L2Entry, 0x420),
    ] {
        let mut image = small(0);
        image[at..at + bytes.len()].copy_from_slice(bytes);
        match Image::open(&write(&dir, &image)) {
            Err(ImageError::Corrupt { path, what, offset: at, .. }) => {
                assert_eq!((path.file_name(), what, at), (Some("image.qcow2".as_ref()), part, offset));
            }
            other => panic!("{part} at {offset:#x}: {:?}", other.map(|_| ())),
        }
    }
    let mut image = small(0);
    image[2048..2056].fill(0xff);
    let error = Image::open(&write(&dir, &image)).unwrap().read_exact_at(&mut [0; 512], 4 * 512).unwrap_err();
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    assert!(matches!(cause, Some(ImageError::Decompress { offset: 0x800, .. })), "{error}");
    let mut old = small(0);
    old[7] = 2;
    let error = exercise(&write(&dir, &old)).unwrap_err();
    assert!(error.contains("no zero flag in version 2"), "{error}");
}

#[test]
fn a_misplaced_table_is_corrupt() {
    let dir = TempDir::new().unwrap();
    let mut image = vec![0; 3 << 16];
    image[..small(0).len()].copy_from_slice(&small(0));
    image[23] = 16; // clusters of 64 KiB
    image[40..48].copy_from_slice(&(1u64 << 16).to_be_bytes());
    image[1 << 16..(1 << 16) + 8].copy_from_slice(&0x200u64.to_be_bytes());
    let error = exercise(&write(&dir, &image)).unwrap_err();
    assert!(error.contains("L1 entry at offset 0x10000"), "{error}");
    image[1 << 16..(1 << 16) + 8].copy_from_slice(&(1u64 << 17).to_be_bytes());
    image[1 << 17..(1 << 17) + 8].copy_from_slice(&0x200u64.to_be_bytes());
    let error = exercise(&write(&dir, &image)).unwrap_err();
    assert!(error.contains("L2 entry at offset 0x20000"), "{error}");
}

/// A handcrafted image of one data cluster of 64 KiB at 0x40000, whose L1 table has these entries, and whose only L2
/// table, at 0x30000, repeats one.
fn repeating(l1: &[u64], l2: u64, size: u64) -> Vec<u8> {
    let mut image = vec![0; 0x50000];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\0\0\0\x02");
    put(20, &16u32.to_be_bytes());
    put(24, &size.to_be_bytes());
    put(36, &u32::try_from(l1.len()).unwrap().to_be_bytes());
    put(40, &0x10000u64.to_be_bytes());
    for (i, entry) in l1.iter().enumerate() {
        put(0x10000 + i * 8, &entry.to_be_bytes());
    }
    put(0x30000, &l2.to_be_bytes().repeat(8192));
    put(0x40000, &noise(5, 65536));
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, &[7; 65536]).unwrap();
    put(0x20000, &encoder.finish().unwrap());
    image
}

/// Half a GiB of disk for each L2 table.
const REACH: u64 = 512 << 20;

#[test]
fn a_disk_of_one_cluster_is_a_bomb() {
    let dir = TempDir::new().unwrap();
    for (what, entry) in [("compressed", 0x20000 | 1 << 62), ("plain", 0x40000)] {
        let path = write(&dir, &repeating(&[0x30000], entry, REACH));
        let error = Image::open(&path).unwrap_err();
        assert!(matches!(error, ImageError::Bomb { held: REACH, limit: 0x1000_0000, .. }), "{what}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("qemu-img convert")), "{what}");
        // As many of them as any file may hold are read, however often a cluster is shared.
        let image = Image::open(&write(&dir, &repeating(&[0x30000], entry, REACH / 2))).unwrap();
        let cluster = if what == "plain" { noise(5, 65536) } else { vec![7; 65536] };
        let mut disk = vec![0; 3 << 16];
        for at in [0, 5 << 16, (REACH / 2) - (3 << 16)] {
            image.read_exact_at(&mut disk, at).unwrap();
            assert!(disk == cluster.repeat(3), "{what}: {at}");
        }
        assert_eq!(image.next_data(REACH / 2 - 1).unwrap(), Some(REACH / 2 - 1..REACH / 2), "{what}");
    }
}

#[test]
fn tables_are_named_once() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, &repeating(&[0x30000, 0, 0x30000 | 1 << 63], 0, 3 * REACH));
    let error = Image::open(&path).unwrap_err().to_string();
    assert!(error.contains("L1 entry at offset 0x10010 is 0x30000, expected an unshared L2 table"), "{error}");
    let path = write(&dir, &repeating(&[0x30000, 0, 0], 0, 3 * REACH));
    assert_eq!(Image::open(&path).unwrap().next_data(0).unwrap(), None);
}

/// Finding holes and reading agree on entries, and a corrupt entry is refused before either.
#[test]
fn a_damaged_entry_is_refused_before_anything_is_read() {
    let dir = TempDir::new().unwrap();
    let disk = 4u64 << 16;
    for (version, entry, words) in [
        (2, 1, "no zero flag in version 2"),
        (2, 0x40001, "no zero flag in version 2"),
        (2, 2, "reserved bits clear"),
        (3, 2, "reserved bits clear"),
        (3, 0x40200, "a cluster at a multiple of the cluster size"),
        (3, 0x40201, "a cluster at a multiple of the cluster size"),
        (3, 0x50000, "65536 bytes inside the file"),
        (3, 1 << 61 | 0x40000, "reserved bits clear"),
        (3, 1 << 62 | 0x50000, "compressed data inside the file"),
    ] {
        let mut image = repeating(&[0x30000], 0x40000, disk);
        image[7] = version;
        image[103] = 104;
        let good = image.clone();
        // The last entry of the disk, and an unused one after its end.
        image[0x30018..0x30020].copy_from_slice(&u64::to_be_bytes(entry));
        let error = Image::open(&write(&dir, &image)).unwrap_err().to_string();
        assert!(error.contains(words), "version {version}, {entry:#x}: {error}");
        let mut image = good;
        image[0x30020..0x30028].copy_from_slice(&u64::to_be_bytes(entry));
        let image = Image::open(&write(&dir, &image)).unwrap();
        crate::image_tools::assert_reads(&image, &noise(5, 65536).repeat(4), "behind the end");
    }
}

#[test]
fn truncated_images_end_in_an_error() {
    let dir = TempDir::new().unwrap();
    for compression in [0, 1] {
        let image = small(compression);
        for len in 4..image.len() {
            let result = exercise(&write(&dir, &image[..len]));
            // The compressed cluster comes last: once it is there, only padding is cut off.
            assert!(result.is_err() || (len > 2048 && result == Ok(small_disk())), "cut to {len}: {result:?}");
        }
    }
}

#[test]
fn truncated_qemu_images_end_in_an_error() {
    if !have("qemu-img") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (raw, qcow2) = (dir.path().join("disk.raw"), dir.path().join("disk.qcow2"));
    let disk = mixed(1 << 20);
    std::fs::write(&raw, &disk).unwrap();
    for options in ["compat=1.1", "compat=1.1,compression_type=zstd"] {
        run("qemu-img", &["convert", "-c", "-f", "raw", "-O", "qcow2", "-o", options, arg(&raw), arg(&qcow2)]);
        let image = std::fs::read(&qcow2).unwrap();
        for len in (4..image.len()).step_by(image.len() / 50) {
            let result = exercise(&write(&dir, &image[..len]));
            assert!(result.is_err() || result.as_ref() == Ok(&disk), "cut to {len}");
        }
    }
}

#[test]
fn each_flipped_header_bit_is_survived() {
    let dir = TempDir::new().unwrap();
    for compression in [0, 1] {
        for bit in 0..112 * 8 {
            let mut image = small(compression);
            image[bit / 8] ^= 1 << (bit % 8);
            let _ = exercise(&write(&dir, &image));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_images_are_survived(
        compression in 0u8..2,
        mutations in prop::collection::vec((0usize..2560, any::<u8>()), 1..12),
        words in prop::collection::vec((0usize..320, any::<u64>(), 0u32..64), 0..4),
        len in 0usize..=2560,
        cut in any::<bool>(),
    ) {
        let dir = TempDir::new().unwrap();
        let mut image = small(compression);
        for (at, byte) in mutations {
            image[at] = byte;
        }
        for (at, word, shift) in words {
            image[at * 8..at * 8 + 8].copy_from_slice(&(word >> shift).to_be_bytes());
        }
        if cut {
            image.truncate(len);
        }
        image[..4.min(len)].copy_from_slice(&b"QFI\xfb"[..4.min(len)]);
        let _ = exercise(&write(&dir, &image));
    }
}
