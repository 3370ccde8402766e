//! `vmbake convert`: disks in formats of clouds, as read by GNU tar and qemu-img, and refusals.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::bufread::GzDecoder;
use serde_json::Value;
use vmbake_common::digest::Digest;

use crate::release::lab::{stderr, text, vmbake};
use crate::tools::have;

const GIB: u64 = 1 << 30;

/// Bytes, and where on a disk they are.
type Data<'a> = Vec<(u64, &'a [u8])>;

/// A folder with a sparse disk `disk.raw`.
struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// A disk of `len` bytes with data at some places.
    fn new(len: u64, data: &[(u64, &[u8])]) -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        let file = File::create(lab.path("disk.raw")).unwrap();
        file.set_len(len).unwrap();
        data.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn convert(&self, image: &str, format: &str, out: &str, more: &[&str]) -> Output {
        let (image, out) = (self.path(image), self.path(out));
        vmbake(&[&["convert", text(&image), "--format", format, "-o", text(&out)], more].concat(), &[])
    }

    /// Converts, which must work.
    fn converted(&self, image: &str, format: &str, out: &str, more: &[&str]) -> PathBuf {
        let done = self.convert(image, format, out, more);
        assert!(done.status.success(), "{}", stderr(&done));
        self.path(out)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
    said
}

fn digest(path: &Path) -> Digest {
    Digest::of(b"").of_stream(File::open(path).unwrap()).unwrap().0
}

/// The fields of old-GNU headers that say where data is, as people read them.
fn headers(archive: &Path) -> String {
    let mut bytes = Vec::new();
    GzDecoder::new(std::io::BufReader::new(File::open(archive).unwrap()))
        .take(4 * 512)
        .read_to_end(&mut bytes)
        .unwrap();
    let field = |bytes: &[u8]| match bytes.first() {
        Some(0x80) => format!("{:?}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        _ => format!("{:?}", String::from_utf8_lossy(bytes).trim_end_matches('\0')),
    };
    let mut said = String::new();
    let first = [
        ("name", 0..100),
        ("mode", 100..108),
        ("uid", 108..116),
        ("gid", 116..124),
        ("size", 124..136),
        ("mtime", 136..148),
        ("chksum", 148..156),
        ("typeflag", 156..157),
        ("magic", 257..265),
        ("isextended", 482..483),
        ("realsize", 483..495),
    ];
    for (name, range) in first {
        writeln!(said, "{name}: {}", field(&bytes[range])).unwrap();
    }
    let mut entries = |at: usize, count: usize| {
        for entry in bytes[at..at + 24 * count].chunks(24).filter(|entry| entry[0] != 0) {
            writeln!(said, "{} {}", field(&entry[..12]), field(&entry[12..])).unwrap();
        }
    };
    entries(386, 4);
    if bytes[482] == 1 {
        entries(512, 21);
    }
    said
}

#[test]
fn gnu_tar_unpacks_the_same_disk() {
    if !have(&["tar", "qemu-img"]) {
        return;
    }
    let (a, zeros) = ([b'a'; 5000], [0; 300_000]);
    // Each 128 KiB: as many runs as fill the header and one block behind it, and one more or less.
    let many = |count: u64| (0..count).map(|number| (number << 17, &a[..])).collect::<Vec<_>>();
    let cases: [(&str, Data<'_>); 8] = [
        ("nothing", vec![]),
        ("start", vec![(0, &a)]),
        ("end", vec![(GIB - 5000, &a)]),
        ("written zeros", vec![(1 << 20, &a), (2 << 20, &zeros), (3 << 20, &a)]),
        ("three and the end", many(3)),
        ("four and the end", many(4)),
        ("twenty-four and the end", many(24)),
        ("twenty-five and the end", many(25)),
    ];
    for (name, data) in cases {
        let lab = Lab::new(GIB, &data);
        let raw = lab.path("disk.raw");
        let archive = lab.converted("disk.raw", "gce", "a.tar.gz", &["-j", "1"]);
        run("tar", &["-C", text(lab.dir.path()), "--transform=s/disk/unpacked/", "-xf", text(&archive)]);
        let unpacked = lab.path("unpacked.raw");
        run("cmp", &[text(&raw), text(&unpacked)]);
        let allocated = unpacked.metadata().unwrap().blocks() * 512;
        assert!(allocated < 1 << 20, "{name}: {allocated} bytes are no holes");
        run("qemu-img", &["convert", "-O", "qcow2", text(&raw), text(&lab.path("disk.qcow2"))]);
        let other = lab.converted("disk.qcow2", "gce", "b.tar.gz", &["-j", "3"]);
        assert_eq!(digest(&archive), digest(&other), "{name}: threads or the format of the image are seen");
        assert_eq!(run("tar", &["-tf", text(&archive)]), "disk.raw\n", "{name}");
        if name == "four and the end" {
            insta::assert_snapshot!("gce", headers(&archive));
        }
    }
}

#[test]
fn offsets_beyond_octal_digits_are_binary() {
    if !have(&["tar"]) {
        return;
    }
    let lab = Lab::new(9 * GIB, &[(0, b"first"), (8 * GIB + 4096, b"behind 8 GiB")]);
    let archive = lab.converted("disk.raw", "gce", "a.tar.gz", &[]);
    insta::assert_snapshot!("gce-long", headers(&archive));
    run("tar", &["-C", text(lab.dir.path()), "--transform=s/disk/unpacked/", "-xf", text(&archive)]);
    let unpacked = File::open(lab.path("unpacked.raw")).unwrap();
    assert_eq!(unpacked.metadata().unwrap().len(), 9 * GIB);
    let mut found = [0; 14];
    unpacked.read_exact_at(&mut found, 8 * GIB + 4095).unwrap();
    assert_eq!(&found, b"\0behind 8 GiB\0");
    let data = rustix::fs::seek(&unpacked, rustix::fs::SeekFrom::Data(4096)).unwrap();
    assert_eq!(data, 8 * GIB + 4096, "the hole is none");
}

#[test]
fn qemu_reads_the_same_disk_from_a_vhd() {
    if !have(&["qemu-img"]) {
        return;
    }
    let lab = Lab::new(5 << 20, &[(0, b"\0first"), (4 << 20, b"later")]);
    let raw = lab.path("disk.raw");
    let vhd = lab.converted("disk.raw", "vhd", "a.vhd", &["-j", "1"]);
    run("qemu-img", &["compare", "-f", "vpc", "-F", "raw", text(&vhd), text(&raw)]);
    let info: Value =
        serde_json::from_str(&run("qemu-img", &["info", "-f", "vpc", "--output", "json", text(&vhd)])).unwrap();
    assert_eq!(info["virtual-size"], 5 << 20);
    assert_eq!(vhd.metadata().unwrap().len(), (5 << 20) + 512);
    // All but time stamp, checksum and unique id is what qemu-img writes for Azure.
    let theirs = lab.path("theirs.vhd");
    run("qemu-img", &["convert", "-O", "vpc", "-o", "subformat=fixed,force_size=on", text(&raw), text(&theirs)]);
    let footer = |path: &Path| {
        let mut footer = fs::read(path).unwrap().split_off(5 << 20);
        [24..28, 64..68, 68..84].into_iter().for_each(|range| footer[range].fill(0));
        footer
    };
    assert_eq!(footer(&vhd), footer(&theirs));
    run("qemu-img", &["convert", "-O", "qcow2", text(&raw), text(&lab.path("disk.qcow2"))]);
    let other = lab.converted("disk.qcow2", "vhd", "b.vhd", &["-j", "3"]);
    assert!(fs::read(&vhd).unwrap() == fs::read(other).unwrap());
    let changed = Lab::new(5 << 20, &[(0, b"\0First"), (4 << 20, b"later")]);
    let changed = fs::read(changed.converted("disk.raw", "vhd", "a.vhd", &[])).unwrap();
    let ours = fs::read(&vhd).unwrap();
    let id = |bytes: &[u8]| bytes[(5 << 20) + 68..][..16].to_vec();
    assert_ne!(id(&changed), id(&ours), "another disk has the same id");
}

#[test]
fn forms_that_are_read_again_hold_the_same_disk() {
    let lab = Lab::new(3 << 20, &[(0, b"\0first"), (2 << 20, b"later")]);
    lab.converted("disk.raw", "qcow2", "a.qcow2", &[]);
    let back = lab.converted("a.qcow2", "raw", "b.raw", &[]);
    assert!(fs::read(lab.path("disk.raw")).unwrap() == fs::read(back).unwrap());
    let answer = lab.convert("disk.raw", "qcow2", "a.qcow2", &["--json", "--force"]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let file = lab.path("a.qcow2");
    let expected = serde_json::json!({
        "path": text(&file),
        "format": "qcow2",
        "disk_bytes": 3 << 20,
        "file_bytes": file.metadata().unwrap().len(),
        "checksum": digest(&file).to_string(),
    });
    assert_eq!(answer, expected);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_left() {
    let part = (1 << 20) + 512;
    let cases: [(u64, &str, &str, &str); 5] = [
        (part, "vhd", "a vhd image cannot hold a disk of 1049088 bytes: expected a multiple of one MiB", "--size 2M"),
        (part, "gce", "expected a multiple of one GiB", "--size 1G"),
        (GIB + (1 << 20), "gce", "expected a multiple of one GiB", "--size 2G"),
        (2041 * GIB, "vhd", "the maximum is 2190433320960", ""),
        (65 << 40, "gce", "the maximum is 70368744177664", ""),
    ];
    for (len, format, message, hint) in cases {
        let lab = Lab::new(len.min(1 << 42), &[(0, b"\0first")]);
        if len > 1 << 42 && File::options().write(true).open(lab.path("disk.raw")).unwrap().set_len(len).is_err() {
            // This file system has no files of that length.
            continue;
        }
        let refused = lab.convert("disk.raw", format, "new", &[]);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(message) && said.contains(hint), "{said}");
        assert_eq!(lab.names(), ["disk.raw"]);
    }
}

#[test]
fn nothing_is_replaced_and_a_full_disk_leaves_nothing() {
    let noise: Vec<u8> =
        (0..3_000_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ i.to_be_bytes()[2]).collect();
    let lab = Lab::new(GIB, &[(0, &[0]), (512, &noise)]);
    for format in ["gce", "vhd", "raw", "qcow2"] {
        fs::write(lab.path("new"), "old").unwrap();
        let refused = lab.convert("disk.raw", format, "new", &[]);
        assert!(stderr(&refused).contains("already exists") && stderr(&refused).contains("--force"), "{format}");
        assert_eq!(fs::read(lab.path("new")).unwrap(), b"old", "{format}");
        // 200 blocks of 512 bytes, after which the system says that a file is too large.
        let script = "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"";
        let full = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_vmbake"), "convert", "disk.raw", "--force", "--format", format])
            .args(["-o", "new"])
            .current_dir(lab.dir.path())
            .output()
            .unwrap();
        let said = stderr(&full);
        assert_eq!(full.status.code(), Some(1), "{format}: {said}");
        assert!(said.contains("new: cannot write"), "{format}: {said}");
        assert_eq!(fs::read(lab.path("new")).unwrap(), b"old", "{format}");
        assert_eq!(lab.names(), ["disk.raw", "new"], "{format}");
        fs::remove_file(lab.path("new")).unwrap();
    }
}
