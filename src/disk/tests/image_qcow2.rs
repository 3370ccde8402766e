//! qcow2 images that QEMU made, read by us and compared byte by byte.

use std::os::unix::fs::FileExt;

use crate::image_tools::{arg, assert_reads, have, mixed, noise, run};
use tempfile::TempDir;
use vmbake_disk::image::{Format, Image, ImageError};
use vmbake_disk::source::ReadAt;

/// Not a multiple of any cluster size but 512.
const LEN: usize = 5 * 1024 * 1024 + 512 * 3;

#[test]
fn reads_what_qemu_writes() {
    if !have("qemu-img") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (raw, qcow2) = (dir.path().join("disk.raw"), dir.path().join("disk.qcow2"));
    let disk = mixed(LEN);
    std::fs::write(&raw, &disk).unwrap();
    for cluster_size in ["512", "1024", "4096", "65536", "131072", "2097152"] {
        for (compressed, options) in [
            (false, "compat=0.10"),
            (false, "compat=1.1"),
            (false, "compat=1.1,preallocation=metadata"),
            (false, "compat=1.1,refcount_bits=1"),
            (true, "compat=0.10"),
            (true, "compat=1.1"),
            (true, "compat=1.1,compression_type=zstd"),
        ] {
            let what = format!("{options},cluster_size={cluster_size}");
            let mut args = vec!["convert", "-f", "raw", "-O", "qcow2", "-o", &what];
            args.extend(compressed.then_some("-c"));
            args.extend([arg(&raw), arg(&qcow2)]);
            run("qemu-img", &args);
            let image = Image::open(&qcow2).unwrap();
            assert_eq!(image.format(), Format::Qcow2);
            assert_reads(&image, &disk, &what);
        }
    }
}

#[test]
fn reads_zero_clusters_and_the_active_layer() {
    if !have("qemu-img") || !have("qemu-io") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (raw, qcow2) = (dir.path().join("disk.raw"), dir.path().join("disk.qcow2"));
    for options in ["compat=1.1", "compat=0.10", "compat=1.1,lazy_refcounts=on"] {
        run("qemu-img", &["create", "-f", "qcow2", "-o", options, arg(&qcow2), "8M"]);
        let io = |command: &str| run("qemu-io", &["-f", "qcow2", "-c", command, arg(&qcow2)]);
        io("write -P 0x11 0 3M");
        io("write -c -P 0x22 4M 64k");
        run("qemu-img", &["snapshot", "-c", "before", arg(&qcow2)]);
        io("write -P 0x33 100k 200k");
        io("write -z 1M 512k"); // allocated before
        io("write -z 5M 1M"); // not allocated
        io("write -z -u 2M 64k"); // no longer allocated
        io("discard 2304k 64k");
        run("qemu-img", &["convert", "-f", "qcow2", "-O", "raw", arg(&qcow2), arg(&raw)]);
        let disk = std::fs::read(&raw).unwrap();
        assert_eq!((disk[0], disk[102_400], disk[1 << 20]), (0x11, 0x33, 0));
        assert_reads(&Image::open(&qcow2).unwrap(), &disk, options);
    }
}

#[test]
fn a_disk_may_end_inside_a_cluster_but_not_inside_a_sector() {
    if !have("qemu-img") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (raw, qcow2) = (dir.path().join("disk.raw"), dir.path().join("disk.qcow2"));
    let disk = mixed(LEN);
    std::fs::write(&raw, &disk).unwrap();
    for compress in [None, Some("-c")] {
        let args = ["convert", "-f", "raw", "-O", "qcow2", arg(&raw), arg(&qcow2)];
        run("qemu-img", &[args[..1].to_vec(), compress.into_iter().collect(), args[1..].to_vec()].concat());
        let file = std::fs::File::options().write(true).open(&qcow2).unwrap();
        let whole = disk.len() / 512 * 512;
        for cut in [0, 512, 1024, 70_144] {
            let len = whole - cut;
            file.write_all_at(&(len as u64).to_be_bytes(), 24).unwrap();
            assert_reads(&Image::open(&qcow2).unwrap(), &disk[..len], "cut");
            // Of the rest of a sector, QEMU shows nothing.
            file.write_all_at(&(len as u64 - 1).to_be_bytes(), 24).unwrap();
            let error = Image::open(&qcow2).unwrap_err().to_string();
            assert!(error.contains("expected a multiple of 512"), "{error}");
        }
    }
}

#[test]
fn next_data_skips_what_is_not_allocated() {
    if !have("qemu-img") || !have("qemu-io") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let qcow2 = dir.path().join("disk.qcow2");
    run("qemu-img", &["create", "-f", "qcow2", arg(&qcow2), "64G"]);
    run("qemu-io", &["-f", "qcow2", "-c", "write -P 1 40G 192k", arg(&qcow2)]);
    let image = Image::open(&qcow2).unwrap();
    let at = 40 << 30;
    assert_eq!(image.next_data(0).unwrap(), Some(at..at + 196_608));
    assert_eq!(image.next_data(at + 7).unwrap(), Some(at + 7..at + 196_608));
    assert_eq!(image.next_data(at + 196_608).unwrap(), None);
}

#[test]
fn threads_share_one_image() {
    if !have("qemu-img") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (raw, qcow2) = (dir.path().join("disk.raw"), dir.path().join("disk.qcow2"));
    let disk = mixed(LEN);
    std::fs::write(&raw, &disk).unwrap();
    run("qemu-img", &["convert", "-c", "-O", "qcow2", "-o", "compression_type=zstd", arg(&raw), arg(&qcow2)]);
    let image = Image::open(&qcow2).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_reads(&image, &disk, "threads"));
        }
    });
}

#[test]
fn everything_else_is_raw() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("disk.raw");
    for disk in [b"QF\0".to_vec(), noise(1, 70_001)] {
        std::fs::write(&path, &disk).unwrap();
        let image = Image::open(&path).unwrap();
        assert_eq!(image.format(), Format::Raw);
        assert_eq!(image.len(), disk.len() as u64);
        let mut all = vec![0; disk.len()];
        image.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(all, disk);
    }
    let sparse = std::fs::File::create(&path).unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.write_all_at(b"x", 1 << 29).unwrap();
    let data = Image::open(&path).unwrap().next_data(0).unwrap().unwrap();
    assert!(data.start == 1 << 29 && data.end < (1 << 29) + (1 << 20), "{data:?}");
}

#[test]
fn only_regular_files_are_opened() {
    let dir = TempDir::new().unwrap();
    assert!(matches!(Image::open(dir.path()), Err(ImageError::Directory { .. })));
    assert!(matches!(Image::open(&dir.path().join("none")), Err(ImageError::Open { .. })));
    if have("mkfifo") {
        let fifo = dir.path().join("fifo");
        run("mkfifo", &[arg(&fifo)]);
        assert!(matches!(Image::open(&fifo), Err(ImageError::NotFile { .. })));
    }
}
