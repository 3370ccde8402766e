//! Disks that are written again after something has changed: the same bytes as from nothing, with less work.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vmbake_disk::disk::Disk;
use vmbake_disk::image::{ClusterCompression, Format};
use vmbake_disk::source::{ContentId, Extent, Identified, Map, ReadAt, Sources};
use vmbake_disk::write::{Earlier, EarlierFile, FileDigest, KnownFile, Output, Written, write_again};

use super::create;
use crate::image_tools::{mixed, noise, text};

const MIB: u64 = 1 << 20;
const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Counts the bytes that are read.
struct Counted {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.bytes.read_exact_at(buf, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.bytes.next_data(offset)
    }
}

/// A disk of a base, an artifact and metadata, and how many bytes of the first two were read.
struct Made {
    disk: Disk,
    read: Arc<AtomicU64>,
}

/// Puts 4 MiB of the base before and behind the artifact, which begins at `at`, and metadata on both ends.
fn make(digest: u8, artifact: Vec<u8>, at: u64) -> Made {
    let read = Arc::new(AtomicU64::new(0));
    let named = |bytes: Vec<u8>, digest: u8| -> Arc<dyn ReadAt> {
        let counted = Counted { bytes, read: Arc::clone(&read) };
        Arc::new(Identified::new(Arc::new(counted), ContentId([digest; 32])))
    };
    let len = artifact.len() as u64;
    let mut sources = Sources::default();
    let metadata = sources.add(Arc::new(text(len, 70_000)));
    let base = sources.add(named(mixed(8 << 20), 255));
    let artifact = sources.add(named(artifact, digest));
    let mut map = Map::hole(16 * MIB);
    map.push(Extent { at: 0, len: 30_000, source: metadata, offset: 0 });
    map.push(Extent { at: 65_536, len: 4 * MIB, source: base, offset: 0 });
    map.push(Extent { at, len, source: artifact, offset: 0 });
    map.push(Extent { at: 10 * MIB, len: 4 * MIB, source: base, offset: 4 * MIB });
    map.push(Extent { at: 16 * MIB - 30_000, len: 30_000, source: metadata, offset: 40_000 });
    Made { disk: Disk::new(map, sources), read }
}

/// Writes a qcow2 file.
fn write_qcow2(path: &Path, disk: &Disk, earlier: &Earlier<'_>) -> Written {
    write_as(path, disk, earlier, ClusterCompression::Zstd)
}

fn write_as(path: &Path, disk: &Disk, earlier: &Earlier<'_>, compression: ClusterCompression) -> Written {
    let file = create(path);
    let output = Output { compression, ..Output::new(Format::Qcow2, &file) };
    write_again(disk, &[output], earlier, TWO, &|_| {}).unwrap().remove(0)
}

/// A disk that was written from nothing.
struct First {
    dir: TempDir,
    path: PathBuf,
    written: Written,
}

impl First {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("first.qcow2");
        let written = write_qcow2(&path, &make(1, text(1, 2_000_000), 5 * MIB).disk, &Earlier::default());
        Self { dir, path, written }
    }

    /// Writes `disk` from nothing and again, as if the first file were `file`; both must be the same.
    fn assert_same(&self, disk: &Disk, file: &File, what: &str) {
        let earlier = Earlier {
            qcow2: &[EarlierFile { file, clusters: &self.written.clusters, compression: ClusterCompression::Zstd }],
            same: &[],
        };
        let (cold, again) = (self.dir.path().join("cold"), self.dir.path().join("again"));
        let of_nothing = write_qcow2(&cold, disk, &Earlier::default());
        assert_eq!(write_qcow2(&again, disk, &earlier), of_nothing, "{what}");
        assert!(std::fs::read(&again).unwrap() == std::fs::read(&cold).unwrap(), "{what}");
    }
}

#[test]
fn what_was_compressed_otherwise_is_not_taken_over() {
    let (first, zlib) = (First::new(), ClusterCompression::Zlib);
    let disk = make(1, text(1, 2_000_000), 5 * MIB).disk;
    let at = |name: &str| first.dir.path().join(name);
    let of_nothing = write_as(&at("cold"), &disk, &Earlier::default(), zlib);
    assert_ne!(of_nothing.digest, first.written.digest);
    let known = |written: &Written, compression| {
        let Written { digest, file_len, .. } = *written;
        KnownFile { format: Format::Qcow2, compression, digest, file_len }
    };
    for (written, path, compression) in
        [(&first.written, &first.path, ClusterCompression::Zstd), (&of_nothing, &at("cold"), zlib)]
    {
        let file = File::open(path).unwrap();
        let qcow2 = [EarlierFile { file: &file, clusters: &written.clusters, compression }];
        for same in [&[][..], &[known(written, compression)]] {
            let again = write_as(&at("again"), &disk, &Earlier { qcow2: &qcow2, same }, zlib);
            assert_eq!(again, of_nothing, "{compression:?}");
            assert!(std::fs::read(at("again")).unwrap() == std::fs::read(at("cold")).unwrap(), "{compression:?}");
        }
    }
}

#[test]
fn unchanged_clusters_are_taken_over_unread() {
    let first = First::new();
    let file = File::open(&first.path).unwrap();
    let earlier = Earlier {
        qcow2: &[EarlierFile { file: &file, clusters: &first.written.clusters, compression: ClusterCompression::Zstd }],
        same: &[],
    };
    let path = first.dir.path().join("again");
    for (digest, artifact, at, most) in [
        (1, text(1, 2_000_000), 5 * MIB, 0),
        (2, noise(2, 2_000_000), 5 * MIB, 2_000_000),
        (3, text(3, 1_500_001), 5 * MIB, 1_500_001),
        (4, text(4, 3_000_000), 5 * MIB, 3_000_000),
        (1, text(1, 2_000_000), 6 * MIB, 0),
        (1, text(1, 2_000_000), 5 * MIB + 4096, 2_000_000),
        (5, vec![0; 2_000_000], 5 * MIB, 2_000_000),
    ] {
        let Made { disk, read } = make(digest, artifact, at);
        write_qcow2(&path, &disk, &earlier);
        let bytes = read.swap(0, Ordering::Relaxed);
        assert_eq!(bytes, most, "bytes read of base and artifact");
        first.assert_same(&disk, &file, &format!("{most} bytes read, artifact at {at}"));
    }
}

#[test]
fn what_is_damaged_in_the_earlier_file_is_made_again() {
    let first = First::new();
    let disk = make(7, text(7, 1_000_000), 5 * MIB).disk;
    let damaged = first.dir.path().join("damaged");
    let len = first.path.metadata().unwrap().len();
    for (at, what) in [(65_536, "first cluster"), (len / 2, "middle"), (3 * 65_536 + 77, "fourth cluster")] {
        std::fs::copy(&first.path, &damaged).unwrap();
        let file = File::options().read(true).write(true).open(&damaged).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        first.assert_same(&disk, &file, what);
        file.set_len(at).unwrap();
        first.assert_same(&disk, &file, "cut off");
        file.set_len(len).unwrap();
        first.assert_same(&disk, &file, "zeros");
    }
}

#[test]
fn what_has_the_same_crc_is_not_taken_over() {
    // The polynomial of CRC-32, as its bits come: wherever it is added, the checksum stays.
    const POLYNOMIAL: [u8; 5] = [0x41, 0x06, 0x71, 0xdb, 0x01];
    let first = First::new();
    let disk = make(7, text(7, 1_000_000), 5 * MIB).disk;
    let forged = first.dir.path().join("forged");
    let bytes = std::fs::read(&first.path).unwrap();
    for at in [65_536 + 100, bytes.len() / 2] {
        let mut other = bytes.clone();
        other[at..].iter_mut().zip(POLYNOMIAL).for_each(|(byte, bits)| *byte ^= bits);
        assert!(other != bytes && crc32fast::hash(&other) == crc32fast::hash(&bytes));
        std::fs::write(&forged, other).unwrap();
        first.assert_same(&disk, &File::open(&forged).unwrap(), "another cluster of the same CRC-32");
    }
}

#[test]
fn more_can_be_new_than_is_kept_in_memory() {
    let first = First::new();
    let file = File::open(&first.path).unwrap();
    let mut sources = Sources::default();
    let base = sources.add(Arc::new(Identified::new(Arc::new(mixed(8 << 20)), ContentId([255; 32]))));
    let new = sources.add(Arc::new(noise(3, 100 << 20)));
    let mut map = Map::hole(110 * MIB);
    map.push(Extent { at: 65_536, len: 4 * MIB, source: base, offset: 0 });
    map.push(Extent { at: 5 * MIB, len: 100 * MIB, source: new, offset: 0 });
    map.push(Extent { at: 105 * MIB, len: 4 * MIB, source: base, offset: 4 * MIB });
    first.assert_same(&Disk::new(map, sources), &file, "100 MiB are new");
}

#[test]
fn both_formats_are_written_again() {
    let first = First::new();
    let file = File::open(&first.path).unwrap();
    let earlier = Earlier {
        qcow2: &[EarlierFile { file: &file, clusters: &first.written.clusters, compression: ClusterCompression::Zstd }],
        same: &[],
    };
    let disk = make(9, noise(9, 2_100_000), 5 * MIB).disk;
    let both = |earlier: &Earlier<'_>| {
        let files = [Format::Raw, Format::Qcow2].map(|format| (format, tempfile::tempfile().unwrap()));
        let outputs: Vec<_> = files.iter().map(|(format, file)| Output::new(*format, file)).collect();
        let written = write_again(&disk, &outputs, earlier, TWO, &|_| {}).unwrap();
        let bytes = files.map(|(_, file)| {
            let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        });
        (written, bytes)
    };
    assert!(both(&earlier) == both(&Earlier::default()));
}

#[test]
fn known_digests_are_not_computed() {
    let first = First::new();
    let disk = make(1, text(1, 2_000_000), 5 * MIB).disk;
    let (digest, path) = (FileDigest::Sha256([7; 32]), first.dir.path().join("known"));
    for (format, len) in [(Format::Raw, disk.len()), (Format::Qcow2, first.written.file_len)] {
        for (file_len, is_taken) in [(len, true), (len + 1, false)] {
            let file = create(&path);
            let same = [KnownFile { format, compression: ClusterCompression::Zstd, digest, file_len }];
            let earlier = Earlier { qcow2: &[], same: &same };
            let written = write_again(&disk, &[Output::new(format, &file)], &earlier, TWO, &|_| {}).unwrap();
            assert_eq!(written[0].digest == digest, is_taken, "{format} of {file_len} bytes");
        }
    }
}
