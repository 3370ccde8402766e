//! Written disks, verified by QEMU, sha256sum, fsverity and our own reader.

mod again;
mod sink;

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::image_tools::{arg, assert_reads, have, mixed, noise, run, text};
use proptest::prelude::*;
use tempfile::TempDir;
use vmbake_disk::disk::Disk;
use vmbake_disk::image::{ClusterCompression, Format, Image};
use vmbake_disk::source::{Extent, FileSource, Map, ReadAt, Sources};
use vmbake_disk::write::{FileDigest, Output, WriteError, Written, fsverity, write};

fn disk_of(source: impl ReadAt + 'static) -> Disk {
    let mut sources = Sources::default();
    let len = source.len();
    let id = sources.add(Arc::new(source));
    Disk::new(Map::whole(id, 0, len), sources)
}

fn create(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap()
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Files {
    raw: PathBuf,
    qcow2: PathBuf,
    written: Vec<Written>,
}

/// Writes both formats and checks what must hold for each disk.
fn write_both(dir: &Path, disk: &Disk, threads: usize) -> Files {
    write_both_as(dir, disk, threads, ClusterCompression::Zstd)
}

fn write_both_as(dir: &Path, disk: &Disk, threads: usize, compression: ClusterCompression) -> Files {
    let (raw, qcow2) = (dir.join(format!("{threads}.raw")), dir.join(format!("{threads}.qcow2")));
    let (raw_file, qcow2_file) = (create(&raw), create(&qcow2));
    let outputs =
        [Output::new(Format::Raw, &raw_file), Output { compression, ..Output::new(Format::Qcow2, &qcow2_file) }];
    let done = AtomicU64::new(0);
    let progress = |bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
    };
    let threads = NonZeroUsize::new(threads).unwrap();
    let written = write(disk, &outputs, threads, &progress).unwrap();
    assert_eq!(done.into_inner(), disk.len(), "progress");
    sink::assert_stored(disk, &raw, threads);
    for (written, path) in written.iter().zip([&raw, &qcow2]) {
        assert_eq!(written.file_len, path.metadata().unwrap().len());
        if let FileDigest::Verity(digest) = written.digest {
            let source = FileSource::new(std::fs::File::open(path).unwrap()).unwrap();
            assert_eq!(fsverity(&source, threads).unwrap(), digest, "{} bytes", written.file_len);
        }
        match written.digest {
            FileDigest::Sha256(digest) => assert_eq!(run("sha256sum", &[arg(path)])[..64], hex(&digest)),
            FileDigest::Verity(digest) if have("fsverity") => {
                let measured = run("fsverity", &["digest", "--compact", arg(path)]);
                assert_eq!(measured.trim(), hex(&digest), "{} bytes", written.file_len);
            }
            FileDigest::Verity(_) => {}
        }
    }
    assert!(matches!(written[0].digest, FileDigest::Verity(_)) && matches!(written[1].digest, FileDigest::Sha256(_)));
    Files { raw, qcow2, written }
}

fn judge(files: &Files) {
    if have("qemu-img") {
        let check = run("qemu-img", &["check", "-f", "qcow2", arg(&files.qcow2)]);
        assert!(check.contains("No errors were found"), "{check}");
        assert!(!check.to_lowercase().contains("leak"), "{check}");
        let compare = run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", arg(&files.raw), arg(&files.qcow2)]);
        assert_eq!(compare.trim(), "Images are identical.");
    }
}

#[test]
fn any_length_is_written() {
    let dir = TempDir::new().unwrap();
    for len in
        [0, 512, 4096, 4608, 65_536, 65_536 + 512, (1 << 19) + 512, (1 << 20) - 512, 1 << 20, (7 << 20) + 512 * 5]
    {
        let bytes = mixed(len);
        let files = write_both(dir.path(), &disk_of(bytes.clone()), 2);
        assert!(std::fs::read(&files.raw).unwrap() == bytes, "raw of {len} bytes");
        let image = Image::open(&files.qcow2).unwrap();
        assert_eq!(image.format(), Format::Qcow2);
        assert_reads(&image, &bytes, "qcow2");
        judge(&files);
    }
}

#[test]
fn clusters_are_compressed_with_zlib_where_that_is_wanted() {
    let dir = TempDir::new().unwrap();
    let plain = (0..48).flat_map(|i| if i % 2 == 0 { noise(i, 65_536) } else { text(i, 65_536) }).collect();
    for bytes in [mixed(7 << 20), mixed((1 << 20) + 4608), noise(3, 1 << 20), text(4, 3 << 20), vec![7; 2 << 20], plain]
    {
        let disk = disk_of(bytes.clone());
        let files = write_both_as(dir.path(), &disk, 1, ClusterCompression::Zlib);
        judge(&files);
        let image = Image::open(&files.qcow2).unwrap();
        assert_eq!((image.format(), image.compression()), (Format::Qcow2, Some(ClusterCompression::Zlib)));
        assert_reads(&image, &bytes, "zlib");
        let written = std::fs::read(&files.qcow2).unwrap();
        // Neither the feature nor the type of compression: a reader that knows neither reads it.
        assert_eq!((&written[72..80], written[104]), (&[0; 8][..], 0));
        for threads in [2, 5] {
            let again = write_both_as(dir.path(), &disk, threads, ClusterCompression::Zlib);
            assert!(std::fs::read(&again.qcow2).unwrap() == written, "{threads} threads");
            assert_eq!(again.written, files.written);
        }
        let zstd = write_both(dir.path(), &disk, 2);
        assert_eq!(Image::open(&zstd.qcow2).unwrap().compression(), Some(ClusterCompression::Zstd));
    }
}

#[test]
fn files_of_two_compressions_are_not_written_at_once() {
    let dir = TempDir::new().unwrap();
    let files = [create(&dir.path().join("zlib")), create(&dir.path().join("zstd"))];
    let compressions = [ClusterCompression::Zlib, ClusterCompression::Zstd];
    let output = |(file, compression)| Output { compression, ..Output::new(Format::Qcow2, file) };
    let outputs: Vec<_> = files.iter().zip(compressions).map(output).collect();
    let refused = write(&disk_of(mixed(1 << 20)), &outputs, NonZeroUsize::MIN, &|_| {});
    assert!(matches!(refused, Err(WriteError::Compressions)));
}

#[test]
fn disks_of_one_kind_of_data_are_written() {
    let dir = TempDir::new().unwrap();
    let len = 3 << 20;
    let alternating = (0..48).flat_map(|i| if i % 2 == 0 { noise(i, 65_536) } else { text(i, 65_536) }).collect();
    for (bytes, most) in [
        (noise(5, len), len + (5 << 16)),
        (text(5, len), len / 4),
        (vec![0; len], 4 << 16),
        (vec![9; len], 6 << 16),
        (alternating, len / 2 + len / 4),
    ] {
        let files = write_both(dir.path(), &disk_of(bytes.clone()), 2);
        judge(&files);
        assert_reads(&Image::open(&files.qcow2).unwrap(), &bytes, "one kind");
        let file_len = usize::try_from(files.written[1].file_len).unwrap();
        assert!(file_len <= most, "{file_len} bytes, expected at most {most}");
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let dir = TempDir::new().unwrap();
    let disk = disk_of(mixed(20 << 20));
    let one = write_both(dir.path(), &disk, 1);
    judge(&one);
    for threads in [2, 4, 100] {
        let more = write_both(dir.path(), &disk, threads);
        assert_eq!(more.written, one.written, "{threads} threads");
        assert!(std::fs::read(&more.qcow2).unwrap() == std::fs::read(&one.qcow2).unwrap());
    }
}

#[test]
fn zeros_become_holes() {
    let dir = TempDir::new().unwrap();
    let mut bytes = vec![0; 8 << 20];
    for block in [0, 100, 101, 2047] {
        bytes[block * 4096 + 17] = 1;
    }
    let files = write_both(dir.path(), &disk_of(bytes.clone()), 2);
    assert_eq!(std::fs::read(&files.raw).unwrap(), bytes);
    let allocated = files.raw.metadata().unwrap().blocks() * 512;
    assert!(allocated <= 4 * 4096 + 4096, "{allocated} bytes are allocated");
}

/// Runs of data at each of `starts`, holes elsewhere.
fn sparse_disk(len: u64, starts: &[u64]) -> Disk {
    let mut sources = Sources::default();
    let data = sources.add(Arc::new(mixed(1 << 20)));
    let mut map = Map::hole(len);
    for at in starts {
        map.push(Extent { at: *at, len: (len - at).min(60_000), source: data, offset: at % 1000 });
    }
    Disk::new(map, sources)
}

#[test]
fn a_large_disk_that_is_mostly_empty_is_small() {
    let dir = TempDir::new().unwrap();
    let len = 8 << 30;
    let disk = sparse_disk(len, &[0, 600 << 20, (600 << 20) + 70_000, (5 << 30) + 12_345, len - 1000]);
    let qcow2 = dir.path().join("disk.qcow2");
    let file = create(&qcow2);
    let output = Output::new(Format::Qcow2, &file);
    let written = write(&disk, &[output], NonZeroUsize::MIN, &|_| {}).unwrap();
    assert!(written[0].file_len < 20 << 16, "{} bytes", written[0].file_len);
    let image = Image::open(&qcow2).unwrap();
    for extent in disk.map().extents() {
        let (mut found, mut expected) = (vec![0; 60_000], vec![0; 60_000]);
        let at = extent.at.min(len - 60_000);
        image.read_exact_at(&mut found, at).unwrap();
        disk.read_exact_at(&mut expected, at).unwrap();
        assert!(found == expected, "at {at}");
    }
}

#[test]
fn holes_between_and_behind_l2_tables_are_written() {
    let dir = TempDir::new().unwrap();
    let starts = [70_000, (512 << 20) - 30_000, (520 << 20) + 5, 540 << 20];
    judge(&write_both(dir.path(), &sparse_disk(600 << 20, &starts), 2));
}

#[test]
fn the_bytes_are_pinned() {
    let dir = TempDir::new().unwrap();
    let starts = [0, 65_536, (512 << 20) - 30_000, 600 << 20];
    let file = create(&dir.path().join("disk.qcow2"));
    let output = Output::new(Format::Qcow2, &file);
    let written = write(&sparse_disk(1 << 30, &starts), &[output], NonZeroUsize::MIN, &|_| {}).unwrap();
    // A change here changes every image that is published: say so in the changelog.
    let FileDigest::Sha256(sha256) = written[0].digest else { panic!("{written:?}") };
    assert_eq!(hex(&sha256), "c679b940c0e7b97b855032d0d95c28473d6a00598f4c77c1cf6488ce6e9e4fbd");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_disks_are_read_back(
        sectors in 1usize..9000,
        runs in prop::collection::vec((0usize..4_700_000, 1usize..300_000, 0u8..3), 0..12),
        threads in 1usize..4,
    ) {
        let dir = TempDir::new().unwrap();
        let mut bytes = vec![0; sectors * 512];
        for (i, (at, len, kind)) in (0u64..).zip(runs) {
            let (at, end) = (at.min(bytes.len()), (at + len).min(bytes.len()));
            let run = match kind {
                0 => noise(i, end - at),
                1 => text(i, end - at),
                _ => vec![0; end - at],
            };
            bytes[at..end].copy_from_slice(&run);
        }
        let files = write_both(dir.path(), &disk_of(bytes.clone()), threads);
        judge(&files);
        prop_assert!(std::fs::read(&files.raw).unwrap() == bytes);
        assert_reads(&Image::open(&files.qcow2).unwrap(), &bytes, "random");
    }
}

/// Fails to read from some offset on.
struct Failing {
    from: u64,
}

impl ReadAt for Failing {
    fn len(&self) -> u64 {
        64 << 20
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if offset + buf.len() as u64 > self.from {
            return Err(io::Error::other("bad medium"));
        }
        buf.fill(1);
        Ok(())
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok((offset < self.len()).then(|| offset..self.len()))
    }
}

#[test]
fn a_source_that_fails_ends_the_writing() {
    let dir = TempDir::new().unwrap();
    for threads in [1, 2, 30] {
        let (raw, qcow2) = (create(&dir.path().join("raw")), create(&dir.path().join("qcow2")));
        let outputs = [Output::new(Format::Raw, &raw), Output::new(Format::Qcow2, &qcow2)];
        let disk = disk_of(Failing { from: (20 << 20) + 5 });
        let error = write(&disk, &outputs, NonZeroUsize::new(threads).unwrap(), &|_| {}).unwrap_err();
        assert!(matches!(error, WriteError::Read { offset: 0x140_0000, .. }), "{error}");
        let mut magic = [0; 4];
        qcow2.read_exact_at(&mut magic, 0).unwrap();
        assert_eq!(magic, [0; 4], "an incomplete file is not taken for an image");
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = create(&dir.path().join("image"));
    let try_write = |disk: &Disk, format| {
        write(disk, &[Output::new(format, &file)], NonZeroUsize::MIN, &|_| {}).unwrap_err().to_string()
    };
    let odd = try_write(&disk_of(vec![1; 1000]), Format::Qcow2);
    assert!(odd.contains("1000 bytes: it is not a multiple of 512"), "{odd}");
    let large = try_write(&Disk::new(Map::hole(1 << 60), Sources::default()), Format::Qcow2);
    assert!(large.contains("L1 table"), "{large}");
    let mut sources = Sources::default();
    let short = sources.add(Arc::new(vec![1; 100]));
    let short = try_write(&Disk::new(Map::whole(short, 50, 512), sources), Format::Raw);
    assert!(short.contains("0x200 bytes") && short.contains("only 0x64"), "{short}");
    file.set_len(3).unwrap();
    let full = try_write(&disk_of(vec![1; 512]), Format::Raw);
    assert!(full.contains("raw output is not empty: it has 3 bytes"), "{full}");
}

/// Unmounts when a test ends, also when it fails.
struct Mount<'a>(&'a Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // Lazily: a process that another test starts at this moment has a copy of every open file until its exec.
        run("umount", &["--lazy", arg(self.0)]);
    }
}

#[test]
fn a_full_file_system_is_reported() {
    if run("id", &["-u"]).trim() != "0" {
        crate::skip::skip("only root can mount a tmpfs");
        return;
    }
    let dir = TempDir::new().unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=1M", "none", arg(dir.path())]);
    let _mount = Mount(dir.path());
    for (format, name) in [(Format::Raw, "raw"), (Format::Qcow2, "qcow2")] {
        let path = dir.path().join(name);
        let file = create(&path);
        let output = Output::new(format, &file);
        let error = write(&disk_of(noise(1, 8 << 20)), &[output], NonZeroUsize::new(2).unwrap(), &|_| {}).unwrap_err();
        match &error {
            WriteError::Output { format: named, source, .. } => {
                assert_eq!((*named, source.kind()), (format, io::ErrorKind::StorageFull), "{error}");
            }
            other => panic!("{other}"),
        }
        assert!(error.to_string().starts_with(&format!("cannot write the {name} output at offset 0x")), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
