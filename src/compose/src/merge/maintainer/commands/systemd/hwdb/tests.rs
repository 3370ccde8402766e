//! Databases as those of systemd-hwdb: `example.txt` has files, [`EXAMPLES`] the digests of what the program wrote of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use vmbake_common::digest::Digest;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use super::super::Source;
use super::super::conf_files::conf_files;
use super::super::example::files_of;
use super::super::trie::{Property, Trie};
use super::{compile, update};
use crate::merge::place::Target;

const EXAMPLE: &str = include_str!("example.txt");

/// Version, and the digest of the database of the example.
const EXAMPLES: [(u16, &str); 2] = [
    (252, "3f69586a06292634e4e602fe7fdee46c55564e2f2c32cddfaaaad1d53c0f6d04"),
    (257, "2cc4cfa1279e55aa530dcbf3ba396a39d79d4960d9b5bf167447cb6d9f9f8d0d"),
];

fn new_target() -> Target {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root.clone(), Origin::default()), Timestamp::default());
    target.directory("/usr/lib/udev", root).unwrap();
    target.symlink("/lib", "usr/lib").unwrap();
    target
}

#[test]
fn the_database_is_that_of_the_real_program() {
    for (version, sha256) in EXAMPLES {
        let mut target = new_target();
        for (path, text) in files_of(EXAMPLE) {
            target.set_text(path, &text).unwrap();
        }
        target.symlink("/etc/udev/hwdb.d/30-masked.hwdb", "/dev/null").unwrap();
        target.symlink("/usr/lib/udev/hwdb.d/31-dangling.hwdb", "/none").unwrap();
        update(&mut target.files(), version, true).unwrap();
        let database = target.tree.read(b"/usr/lib/udev/hwdb.bin", 1 << 20).unwrap();
        assert_eq!(Digest::of(&database).hex(), sha256, "{version}: {} bytes", database.len());
        let id = target.tree.resolve(b"/usr/lib/udev/hwdb.bin").unwrap();
        assert_eq!(target.tree.inode(id).meta.mode, 0o444);
    }
}

#[test]
fn a_database_without_files_goes() {
    let mut target = new_target();
    for path in ["/usr/lib/udev/hwdb.bin", "/etc/udev/hwdb.bin", "/etc/udev/hwdb.d/.hidden.hwdb", "/etc/udev/hwdb.d/x"]
    {
        target.set_text(path, "x").unwrap();
    }
    update(&mut target.files(), 257, true).unwrap();
    assert!(target.tree.resolve(b"/usr/lib/udev/hwdb.bin").is_err());
    assert!(target.tree.resolve(b"/etc/udev/hwdb.bin").is_ok());
    update(&mut target.files(), 257, false).unwrap();
    assert!(target.tree.resolve(b"/etc/udev/hwdb.bin").is_err());
}

#[test]
fn what_is_too_large_is_not_compiled() {
    let (patterns, properties) = ("usb:v*\n".repeat(200_000), " A=x\n".repeat(200_000));
    assert!(compile(&[(b"/x.hwdb".to_vec(), Some(format!("{patterns}{properties}").into_bytes()))], 257).is_err());
    let mut trie = Trie::new();
    let property = Property { key: b" A", value: b"x", file: b"/x", priority: 1, line: 1 };
    let inserted = (0..4_000_000_u32).try_for_each(|number| trie.insert(&number.to_be_bytes(), &property));
    assert!(inserted.is_err());
}

/// What systemd-hwdb of this machine writes of files, with its version.
fn judged(root: &Path, files: &[(String, String)]) -> Option<(u16, Vec<u8>)> {
    let said = Command::new("systemd-hwdb").arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).unwrap();
    let version = said.split_whitespace().nth(1)?.parse().ok()?;
    for (name, text) in files {
        let path = root.join("etc/udev/hwdb.d").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let ran = Command::new("systemd-hwdb").arg("--root").arg(root).arg("update").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    Some((version, fs::read(root.join("etc/udev/hwdb.bin")).unwrap()))
}

/// Records of a few words, in which prefixes and keys meet often.
fn random(seed: &mut u64) -> String {
    let mut next = |below: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..next(30) {
        for _ in 0..next(3) {
            let words = ["usb:", "v1", "v12", "*", "p", "d0", "é", "\u{ff}", "-", "z"];
            (0..next(6)).for_each(|_| text.push_str(words[usize::try_from(next(10)).unwrap()]));
            text.push('\n');
        }
        for _ in 0..next(4) {
            let words = [" ", " A", " AB=", "x", "=", "xyz", " # ", "\t", " B=1", "yz"];
            text.push(' ');
            (0..next(5)).for_each(|_| text.push_str(words[usize::try_from(next(10)).unwrap()]));
            text.push('\n');
        }
        if next(4) > 0 {
            text.push_str(["\n", "\r\n", "\n\r", "\0"][usize::try_from(next(4)).unwrap()]);
        }
    }
    text
}

#[test]
fn random_files_are_compiled_as_by_the_program_of_this_machine() {
    let mut seed = 1;
    for _ in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let files: Vec<_> = (0..3).map(|number| (format!("{number}.hwdb"), random(&mut seed))).collect();
        let Some((version, expected)) = judged(&root, &files) else { return };
        let sources = files.iter().map(|(name, text)| {
            (format!("{}/etc/udev/hwdb.d/{name}", root.display()).into_bytes(), Some(text.clone().into_bytes()))
        });
        let sources: Vec<Source> = sources.collect();
        assert!(compile(&sources, version).unwrap() == expected, "{files:?}");
    }
}

/// All of the database of Debian, if this machine has it.
#[test]
fn the_files_of_this_machine_are_compiled_as_by_its_program() {
    let Ok(entries) = fs::read_dir("/usr/lib/udev/hwdb.d") else { return };
    let paths =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "hwdb"));
    let mut files: Vec<_> = paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let Some((version, expected)) = judged(&root, &files) else { return };
    let mut target = new_target();
    for (name, text) in &files {
        target.set_text(&format!("{}/etc/udev/hwdb.d/{name}", root.display()), text).unwrap();
    }
    let directory = format!("{}/etc/udev/hwdb.d", root.display());
    let sources = conf_files(&target.files(), [&directory, "/none"], b".hwdb").unwrap();
    assert!(compile(&sources, version).unwrap() == expected);
}
