//! Blocks of a snapshot: required blocks, savings by a parent, and arbitrary content of all others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::progress::Progress;
use vmbake_publish::ebs::blocks::{BlockDigest, Blocks, BlocksError, linear_checksum};
use vmbake_publish::ebs::snapshot::{SnapshotError, plan};

use crate::tools::have;

const TOOLS: [&str; 6] = ["sgdisk", "mke2fs", "debugfs", "e2fsck", "mkfs.fat", "fsck.fat"];
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const BLOCK: u64 = 512 << 10;
/// Place and length of the FAT and of the ext4 partition; behind them are 4 MiB without a partition.
const FAT: (u64, u64) = (8 * MIB, 40 * MIB);
const EXT4: (u64, u64) = (48 * MIB, GIB - 52 * MIB);

fn run(program: &str, args: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
}

/// A folder with a disk.
struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// A disk with an ESP and a root file system that holds one file.
    fn new(content: &[u8]) -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap() };
        let (disk, part, file) = (lab.disk(), lab.path("part"), lab.path("file"));
        File::create(&disk).unwrap().set_len(GIB).unwrap();
        let sectors = |(at, len): (u64, u64)| format!("{}:{}", at / 512, (at + len) / 512 - 1);
        let new = [format!("--new=1:{}", sectors(FAT)), format!("--new=2:{}", sectors(EXT4))];
        run("sgdisk", &[&new[0], "--typecode=1:ef00", &new[1], "--typecode=2:8304", disk.to_str().unwrap()]);
        fs::write(&file, content).unwrap();
        lab.make(&part, FAT.1, "mkfs.fat", &["-F", "32", "-i", "12345678"]);
        lab.place(&part, FAT.0);
        let fixed = "hash_seed=11111111-1111-1111-1111-111111111111";
        let uuid = "22222222-2222-2222-2222-222222222222";
        lab.make(&part, EXT4.1, "mke2fs", &["-q", "-F", "-t", "ext4", "-U", uuid, "-E", fixed]);
        let write = format!("write {} file", file.to_str().unwrap());
        run("debugfs", &["-w", "-R", &write, part.to_str().unwrap()]);
        lab.place(&part, EXT4.0);
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn disk(&self) -> PathBuf {
        self.path("disk.raw")
    }

    fn make(&self, part: &Path, len: u64, program: &str, args: &[&str]) {
        File::create(part).unwrap().set_len(len).unwrap();
        run(program, &[args, &[part.to_str().unwrap()]].concat());
    }

    /// Copies a partition to its place, zeros left out.
    fn place(&self, part: &Path, at: u64) {
        let (from, to) = (fs::read(part).unwrap(), File::options().write(true).open(self.disk()).unwrap());
        for (chunk, index) in from.chunks(4096).zip(0..) {
            if chunk.iter().any(|byte| *byte != 0) {
                to.write_all_at(chunk, at + index * 4096).unwrap();
            }
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        File::options().write(true).open(self.disk()).unwrap().write_all_at(bytes, at).unwrap();
    }

    /// The partition at a place of the disk `bytes`, as a file.
    fn part(&self, bytes: &[u8], (at, len): (u64, u64)) -> String {
        let path = self.path("cut");
        let at = usize::try_from(at).unwrap();
        fs::write(&path, &bytes[at..at + usize::try_from(len).unwrap()]).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn blocks(image: &Path) -> Blocks {
    Blocks::of_image(image, NonZeroUsize::new(2).unwrap(), &Progress::new(true)).unwrap()
}

fn block(disk: &[u8], index: u64) -> &[u8] {
    let at = usize::try_from(index * BLOCK).unwrap();
    &disk[at..at + usize::try_from(BLOCK).unwrap()]
}

fn sha256(bytes: &[u8]) -> BlockDigest {
    Sha256::digest(bytes).into()
}

#[test]
fn what_does_not_count_may_hold_anything() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new(&[b'x'; 5_000_000]);
    let mut disk = fs::read(lab.disk()).unwrap();
    let found: BTreeMap<u64, BlockDigest> = blocks(&lab.disk()).iter().collect();
    for (index, digest) in &found {
        assert_eq!(sha256(block(&disk, *index)), *digest, "block {index}");
    }
    // All of the ESP, and both copies of the partition table.
    let esp = FAT.0 / BLOCK..(FAT.0 + FAT.1) / BLOCK;
    assert!(esp.chain([0, GIB / BLOCK - 1]).all(|index| found.contains_key(&index)));
    assert!(found.len() < 300, "{} blocks of a disk that is nearly empty", found.len());
    let size = usize::try_from(BLOCK).unwrap();
    for (index, bytes) in (0..).zip(disk.chunks_mut(size)) {
        if !found.contains_key(&index) {
            bytes.fill(0xa5);
        }
    }
    let root = lab.part(&disk, EXT4);
    run("e2fsck", &["-fn", &root]);
    let kept = lab.path("kept");
    run("debugfs", &["-R", &format!("dump file {}", kept.to_str().unwrap()), &root]);
    assert!(fs::read(kept).unwrap() == [b'x'; 5_000_000]);
    run("fsck.fat", &["-n", &lab.part(&disk, FAT)]);
    fs::write(lab.path("garbage.raw"), &disk).unwrap();
    run("sgdisk", &["--verify", lab.path("garbage.raw").to_str().unwrap()]);
}

#[test]
fn free_blocks_are_left_out_and_others_are_not() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new(b"content");
    let before = blocks(&lab.disk());
    let counts = |found: &Blocks, at: u64| found.iter().any(|(index, _)| index == at / BLOCK);
    let (free, gap) = (EXT4.0 + 700 * MIB, GIB - 3 * MIB);
    assert!(!counts(&before, free) && !counts(&before, gap), "zeros");
    lab.write(free, b"deleted");
    assert_eq!(blocks(&lab.disk()), before, "data in free blocks");
    lab.write(gap, b"foreign boot code");
    let after = blocks(&lab.disk());
    assert!(counts(&after, gap), "data outside of partitions");
    assert_eq!(after.beyond(&before).map(|(index, _)| index).collect::<Vec<_>>(), [gap / BLOCK]);
    // A volume that is not clean says nothing certain: all of it counts.
    lab.write(EXT4.0 + 1024 + 0x3a, &[0, 0]);
    assert!(blocks(&lab.disk()).iter().count() as u64 > EXT4.1 / BLOCK);
}

#[test]
fn a_parent_saves_what_did_not_change() {
    if !have(&TOOLS) {
        return;
    }
    let (old, new) = (Lab::new(&[b'x'; 9_000_000]), Lab::new(&[b'x'; 2_000_000]));
    let (parent, own) = (blocks(&old.disk()), blocks(&new.disk()));
    let zeros = sha256(&vec![0; usize::try_from(BLOCK).unwrap()]);
    let (mut snapshot, wanted): (BTreeMap<_, _>, BTreeMap<_, _>) = (parent.iter().collect(), own.iter().collect());
    let sent: Vec<_> = own.beyond(&parent).collect();
    assert!(sent.is_sorted_by_key(|(index, _)| *index));
    assert!(sent.len() < 60, "{} blocks are sent", sent.len());
    assert!(sent.iter().any(|(index, digest)| !wanted.contains_key(index) && *digest == zeros), "nothing became free");
    assert!(sent.iter().all(|sent| snapshot.insert(sent.0, sent.1) != Some(sent.1)), "sent although it is there");
    for (index, digest) in snapshot {
        assert_eq!(wanted.get(&index).copied().unwrap_or(zeros), digest, "block {index}");
    }
    assert_eq!(own.beyond(&own).count(), 0);
}

#[test]
fn a_disk_has_one_digest_in_every_form() {
    if !have(&["qemu-img"]) || !have(&TOOLS) {
        return;
    }
    let lab = Lab::new(b"content");
    let (raw, qcow2) = (lab.disk(), lab.path("disk.qcow2"));
    run("qemu-img", &["convert", "-O", "qcow2", raw.to_str().unwrap(), qcow2.to_str().unwrap()]);
    let found = blocks(&raw);
    assert_eq!(found.gib(), 1);
    assert_eq!(blocks(&qcow2), found);
    let one = Blocks::of_image(&raw, NonZeroUsize::MIN, &Progress::new(true)).unwrap();
    assert_eq!(one, found, "threads are seen");
    let digest = found.disk_digest("uefi", None);
    assert_eq!(digest, one.disk_digest("uefi", None));
    let others = [found.disk_digest("legacy-bios", None), found.disk_digest("uefi", Some("key"))];
    assert!(others.iter().all(|other| *other != digest) && others[0] != others[1]);
    lab.write(EXT4.0 + 1024 + 0x78, b"label");
    assert_ne!(blocks(&raw).disk_digest("uefi", None), digest);
}

#[test]
fn the_linear_checksum_is_that_of_all_digests() {
    let digests = [sha256(b"a"), sha256(b"b")];
    assert_eq!(Digest::Sha256(linear_checksum(digests)), Digest::of(&digests.concat()));
    assert_eq!(Digest::Sha256(linear_checksum([])), Digest::of(b""));
}

#[test]
fn disks_that_are_no_volumes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk.raw");
    for (len, said, hint) in [
        (GIB + 512, "disk of 1073742336 bytes: a snapshot requires a multiple of one GiB", true),
        (65_537 * GIB, "disk of 70369817919488 bytes: a snapshot requires 1 to 65536 GiB", false),
    ] {
        // File systems end somewhere: a qcow2 header can say any length.
        let (image, len_text) = (path.with_extension("qcow2"), len.to_string());
        if !have(&["qemu-img"]) {
            return;
        }
        run("qemu-img", &["create", "-f", "qcow2", "-o", "cluster_size=2M", image.to_str().unwrap(), &len_text]);
        let error = Blocks::of_image(&image, NonZeroUsize::MIN, &Progress::new(true)).unwrap_err();
        assert!(matches!(error, BlocksError::Unaligned { .. } | BlocksError::Length { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{}: {said}", image.display()));
        assert_eq!(error.hint().is_some_and(|hint| hint.contains("--size 2G")), hint);
    }
}

#[test]
fn a_plan_says_all_that_a_snapshot_needs() {
    if !have(&TOOLS) {
        return;
    }
    let (old, new) = (Lab::new(&[b'x'; 9_000_000]), Lab::new(&[b'x'; 2_000_000]));
    let plan = |image: &Path, parent: Option<&Path>| {
        plan(image, parent, "uefi", NonZeroUsize::new(2).unwrap(), &Progress::new(true))
    };
    let whole = plan(&new.disk(), None).unwrap();
    assert_eq!((whole.volume_size, whole.block_size, whole.blocks.len() as u64), (1, BLOCK, whole.used_blocks));
    let left_out: u64 = whole.left_out.iter().map(|[start, last]| last - start + 1).sum();
    assert_eq!(left_out + whole.used_blocks, GIB / BLOCK);
    let child = plan(&new.disk(), Some(&old.disk())).unwrap();
    assert_eq!((&child.disk_digest, child.used_blocks), (&whole.disk_digest, whole.used_blocks));
    assert!(child.changed_blocks_count < 60 && child.checksum != whole.checksum);
    assert_eq!(plan(&new.disk(), Some(&new.disk())).unwrap().blocks, []);
    // A parent that is longer has blocks that a snapshot could not overwrite.
    File::options().write(true).open(old.disk()).unwrap().set_len(2 * GIB).unwrap();
    run("sgdisk", &["--move-second-header", old.disk().to_str().unwrap()]);
    let error = plan(&new.disk(), Some(&old.disk())).unwrap_err();
    assert!(matches!(error, SnapshotError::Longer { found: 2, expected: 1, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("--parent"));
    assert!(plan(&old.disk(), Some(&new.disk())).unwrap().changed_blocks_count > 0, "a disk may grow");
}
