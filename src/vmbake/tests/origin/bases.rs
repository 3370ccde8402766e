//! Bases with other partitions than Debian's cloud images: baked, or refused with a clear error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use vmbake::cli::error_report::hint;
use vmbake_bake::{BakeError, BakeRequest, Baked};
use vmbake_disk::gpt;

use super::bakery::{bake, base_of, can_bake, request};
use super::image::vmbake;
use crate::tools::have;

fn sgdisk(disk: &Path, args: &[&str]) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new("sgdisk").args(args).arg(disk).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{args:?}: {text}");
    text
}

/// A base, changed before its manifest pins it, and what to bake on it.
fn with_base(dir: &Path, edit: impl FnOnce(&Path)) -> BakeRequest {
    let base = base_of(dir);
    edit(&base);
    request(dir, base, "out", 2)
}

fn image(baked: &Baked) -> PathBuf {
    baked.outputs[0].path.clone()
}

/// The sentence, and the hint.
fn refused(request: &BakeRequest) -> (String, String) {
    let error: Box<dyn vmbake_common::hint::Hint> = Box::new(bake(request).unwrap_err());
    let text = error.to_string();
    assert!(error.source().is_none(), "{text}");
    let base = format!("{}: ", request.base.as_ref().unwrap().display());
    assert!(text.starts_with(&base), "{text}");
    (text[base.len()..].to_owned(), hint(&*error).unwrap_or_default())
}

/// Adds a swap partition of 8 MiB behind the root, with a pattern in it.
fn add_swap(disk: &Path) {
    let len = fs::metadata(disk).unwrap().len();
    let file = fs::File::options().write(true).open(disk).unwrap();
    file.set_len(len + (16 << 20)).unwrap();
    sgdisk(disk, &["--move-second-header", "--new=5:0:+8M", "--typecode=5:8200"]);
    let swap = gpt::read(&fs::read(disk).unwrap()).unwrap().partition(5).unwrap().clone();
    let pattern: Vec<u8> = (0..swap.len).map(|at| u8::try_from(at % 251).unwrap()).collect();
    std::os::unix::fs::FileExt::write_all_at(&file, &pattern, swap.start).unwrap();
}

#[test]
fn a_partition_behind_the_root_is_kept() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut request = with_base(dir.path(), add_swap);
    let base = fs::read(request.base.as_ref().unwrap()).unwrap();
    let path = image(&bake(&request).unwrap());
    let baked = fs::read(&path).unwrap();
    let table = gpt::read(&base).unwrap();
    assert_eq!((baked.len(), gpt::read(&baked).unwrap()), (base.len(), table.clone()));
    let swap = table.partition(5).unwrap();
    let range = usize::try_from(swap.start).unwrap()..usize::try_from(swap.end()).unwrap();
    assert!(baked[range.clone()] == base[range], "the swap partition's bytes");
    assert!(sgdisk(&path, &["--verify"]).contains("No problems found"));
    assert!(vmbake(&["lint", path.to_str().unwrap()]).status.success());
    // The same size may be said, and no other.
    request.size = Some(base.len() as u64);
    request.out = dir.path().join("same");
    assert!(fs::read(image(&bake(&request).unwrap())).unwrap() == baked);
    request.size = Some(base.len() as u64 * 2);
    request.out = dir.path().join("larger");
    let (text, told) = refused(&request);
    assert!(text.starts_with("refused: partition 5 (Linux swap) follows the root partition 1: "), "{text}");
    assert!(told.contains("bake without --size"), "{told}");
}

#[test]
fn of_two_roots_the_chosen_one_is_replaced() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The second slot is a copy of the first, as after an update.
    let mut request = with_base(dir.path(), |disk| {
        let root = gpt::read(&fs::read(disk).unwrap()).unwrap().partition(1).unwrap().clone();
        let bytes = fs::read(disk).unwrap();
        let (start, end) = (usize::try_from(root.start).unwrap(), usize::try_from(root.end()).unwrap());
        let file = fs::File::options().write(true).open(disk).unwrap();
        file.set_len(bytes.len() as u64 + root.len + (2 << 20)).unwrap();
        let new = format!("--new=2:0:+{}K", root.len / 1024);
        sgdisk(disk, &["--move-second-header", &new, "--typecode=2:8304", "--change-name=2:slot-b"]);
        let copy = gpt::read(&fs::read(disk).unwrap()).unwrap().partition(2).unwrap().clone();
        assert!(copy.start.is_multiple_of(4096));
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes[start..end], copy.start).unwrap();
    });
    let (text, told) = refused(&request);
    assert!(text.starts_with("several partitions can be the root file system: 1 ("), "{text}");
    assert!(text.contains("2 (\"slot-b\", ") && told.contains("--partition N"), "{text}; {told}");

    let base = fs::read(request.base.as_ref().unwrap()).unwrap();
    let table = gpt::read(&base).unwrap();
    let part = |bytes: &[u8], number| {
        let found = table.partition(number).unwrap();
        bytes[usize::try_from(found.start).unwrap()..usize::try_from(found.end()).unwrap()].to_vec()
    };
    for (chosen, other) in [(1, 2), (2, 1)] {
        // To the same place: what was baked of the other partition is not taken for this one.
        (request.partition, request.force) = (Some(chosen), true);
        let baked = fs::read(image(&bake(&request).unwrap())).unwrap();
        assert!(part(&baked, other) == part(&base, other), "partition {other} stays");
        assert!(part(&baked, chosen) != part(&base, chosen), "partition {chosen} is new");
    }
}

#[test]
fn what_is_no_disk_with_a_table_is_refused() {
    if !can_bake() || !have(&["mke2fs"]) {
        return;
    }
    type Case = (fn(&Path), &'static str, &'static str);
    let cases: [Case; 2] = [
        (
            |disk| drop(sgdisk(disk, &["--gpttombr=1:14:15"])),
            "refused: an MBR partition table; a base requires a GUID partition table",
            "sgdisk --mbrtogpt",
        ),
        (
            |disk| {
                let table = gpt::read(&fs::read(disk).unwrap()).unwrap();
                let root = table.partition(1).unwrap();
                let bytes = fs::read(disk).unwrap();
                let range = usize::try_from(root.start).unwrap()..usize::try_from(root.end()).unwrap();
                fs::write(disk, &bytes[range]).unwrap();
            },
            "refused: ext4 without a partition table; a base must be a whole disk",
            "use an image of a whole disk",
        ),
    ];
    for (edit, text, told) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (found, hint) = refused(&with_base(dir.path(), edit));
        assert_eq!(found, text);
        assert!(hint.contains(told), "{hint}");
    }
}

#[test]
fn a_backup_table_that_is_used_is_said() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = with_base(dir.path(), |disk| {
        let mut bytes = fs::read(disk).unwrap();
        bytes[512 + 56] ^= 1;
        fs::write(disk, bytes).unwrap();
    });
    let baked = bake(&request).unwrap();
    assert!(matches!(&baked.notes[..], [one] if one.starts_with("using the backup partition table: ")), "{baked:?}");
    let json = serde_json::to_value(&baked).unwrap();
    assert_eq!(json["notes"][0], baked.notes[0]);
    // The image has two good copies.
    let table = gpt::read(&fs::read(image(&baked)).unwrap()).unwrap();
    assert_eq!((table.used_backup, table.backup_damage), (None, None));
}

#[test]
fn other_formats_are_refused_by_name() {
    if !can_bake() || !have(&["gzip"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut request = with_base(dir.path(), |_| ());
    let base = request.base.clone().unwrap();
    let done = Command::new("gzip").arg("-1k").arg(&base).status().unwrap();
    assert!(done.success());
    request = super::bakery::request(dir.path(), base.with_extension("raw.gz"), "out", 2);
    let error: BakeError = bake(&request).unwrap_err();
    let error: Box<dyn vmbake_common::hint::Hint> = Box::new(error);
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        chain = format!("{chain}: {next}");
        cause = next.source();
    }
    assert!(chain.contains("base.raw.gz: compressed with gzip; only raw and qcow2"), "{chain}");
    assert!(hint(&*error).unwrap().starts_with("unpack it: gzip -dk "), "{:?}", hint(&*error));
}
