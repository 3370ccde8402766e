//! Free blocks of volumes: `dumpe2fs` says the same, and a volume of which they are not certain has none.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use vmbake_disk::ext4::{self, Corruption, Location, ReadError, VolumeFault};
use vmbake_disk::source::FileSource;

use crate::common::{MIB, empty_tree, have, put_file, run, run_any, smallest, text, write};

/// A volume of `mke2fs` with a file and what a deleted one left.
fn volume(dir: &Path, options: &[&str]) -> PathBuf {
    let (image, file) = (dir.join("volume"), dir.join("file"));
    File::create(&image).unwrap().set_len(300 * MIB).unwrap();
    fs::write(&file, vec![b'x'; 3_000_000]).unwrap();
    run("mke2fs", &[&["-q", "-F"], options, &[text(&image)]].concat());
    for command in [format!("write {} kept", text(&file)), format!("write {} gone", text(&file)), "rm gone".to_owned()]
    {
        run("debugfs", &["-w", "-R", &command, text(&image)]);
    }
    image
}

fn free(image: &Path, least: u64) -> Result<Vec<Range<u64>>, ReadError> {
    ext4::free_ranges(&FileSource::new(File::open(image).unwrap()).unwrap(), least)
}

/// The same as `dumpe2fs` lists them, joined across groups.
fn judged(image: &Path) -> Vec<Range<u64>> {
    let said = String::from_utf8(run("dumpe2fs", &[text(image)]).stdout).unwrap();
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    let size = said.lines().find_map(|line| line.strip_prefix("Block size:")).map(number).unwrap();
    let lists = said.lines().filter_map(|line| line.strip_prefix("  Free blocks: "));
    let mut found: Vec<Range<u64>> = Vec::new();
    for run in lists.flat_map(|list| list.split(',')).map(str::trim).filter(|run| !run.is_empty()) {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let range = number(first) * size..(number(last) + 1) * size;
        match found.last_mut() {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => found.push(range),
        }
    }
    found
}

#[test]
fn dumpe2fs_finds_the_same_blocks() {
    if !have(&["mke2fs", "debugfs", "dumpe2fs"]) {
        return;
    }
    let cases: [&[&str]; 10] = [
        &["-t", "ext4", "-b", "4096"],
        &["-t", "ext4", "-b", "1024"],
        &["-t", "ext4", "-b", "1024", "-O", "^64bit"],
        &["-t", "ext4", "-b", "4096", "-O", "^64bit,^flex_bg"],
        &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"],
        &["-t", "ext4", "-O", "^metadata_csum,^uninit_bg"],
        &["-t", "ext4", "-O", "sparse_super2,^resize_inode", "-b", "1024"],
        &["-t", "ext4", "-g", "8192", "-b", "4096"],
        &["-t", "ext3"],
        &["-t", "ext2", "-b", "2048", "-O", "^sparse_super,^resize_inode"],
    ];
    for options in cases {
        let dir = tempfile::tempdir().unwrap();
        let image = volume(dir.path(), options);
        let expected = judged(&image);
        assert!(!expected.is_empty(), "{options:?}");
        assert_eq!(free(&image, 1).unwrap(), expected, "{options:?}");
        let long: Vec<_> = expected.into_iter().filter(|range| range.end - range.start >= MIB).collect();
        assert_eq!(free(&image, MIB).unwrap(), long, "{options:?}");
    }
}

#[test]
fn authored_volumes_are_judged_alike() {
    if !have(&["dumpe2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("volume");
    let mut tree = empty_tree();
    put_file(&mut tree, "/file", &[b'x'; 100_000]);
    write(&ext4::author(&tree, &smallest()).unwrap(), &image);
    assert_eq!(free(&image, 1).unwrap(), judged(&image));
}

#[test]
fn free_blocks_overwritten_change_nothing() {
    if !have(&["mke2fs", "debugfs", "e2fsck"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = volume(dir.path(), &["-t", "ext4"]);
    let file = File::options().write(true).open(&image).unwrap();
    for range in free(&image, 1).unwrap() {
        let garbage = vec![0xa5; usize::try_from(range.end - range.start).unwrap()];
        file.write_all_at(&garbage, range.start).unwrap();
    }
    run("e2fsck", &["-fn", text(&image)]);
    let kept = run("debugfs", &["-R", "cat kept", text(&image)]).stdout;
    assert!(kept == vec![b'x'; 3_000_000]);
}

#[test]
fn where_a_bit_is_not_certain_nothing_is_free() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    for (options, command) in [
        (&["-t", "ext4", "-O", "bigalloc"][..], None),
        (&["-t", "ext4", "-O", "meta_bg,^resize_inode"], None),
        (&["-t", "ext4", "-O", "shared_blocks"], None),
        (&["-t", "ext4"], Some("set_super_value state 2")),
        (&["-t", "ext4"], Some("feature needs_recovery")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("volume");
        File::create(&image).unwrap().set_len(64 * MIB).unwrap();
        if !run_any("mke2fs", &[&["-q", "-F"], options, &[text(&image)]].concat()).status.success() {
            // Older and newer programs differ in which features they make.
            continue;
        }
        if let Some(command) = command {
            run("debugfs", &["-w", "-R", command, text(&image)]);
        }
        assert_eq!(free(&image, 1).unwrap(), [], "{options:?} {command:?}");
    }
}

#[test]
fn damaged_bitmaps_are_refused() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = volume(dir.path(), &["-t", "ext4", "-b", "4096"]);
    let said = String::from_utf8(run("dumpe2fs", &[text(&image)]).stdout).unwrap();
    let block = said.split("Block bitmap at ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let at = block.trim_end_matches(',').parse::<u64>().unwrap() * 4096;
    let file = File::options().write(true).open(&image).unwrap();
    file.write_all_at(&[0], at).unwrap();
    let error = free(&image, 1).unwrap_err();
    assert!(
        matches!(&error, ReadError::Corrupt { place: Location::Group(0), what: Corruption::Checksum { .. } }),
        "{error:?}"
    );

    let image = volume(dir.path(), &["-t", "ext4", "-b", "4096", "-O", "64bit,^metadata_csum,^uninit_bg"]);
    // The second descriptor of 64 bytes, in block 1.
    let file = File::options().write(true).open(&image).unwrap();
    file.write_all_at(&80_000_000u32.to_le_bytes(), 4096 + 64).unwrap();
    let error = free(&image, 1).unwrap_err();
    let expected = VolumeFault::BlockBitmap { block: 80_000_000, blocks: 76_800 };
    assert!(
        matches!(&error, ReadError::Corrupt { place: Location::Group(1), what: Corruption::Volume(found) } if *found == expected),
        "{error:?}"
    );
}
