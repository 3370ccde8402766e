//! Databases as those of journalctl.

use std::fs;
use std::process::Command;

use vmbake_common::digest::Digest;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use super::super::example::files_of;
use super::{DATABASE, Source, compile, language, update};
use crate::merge::place::Target;

const EXAMPLE: &str = include_str!("example.txt");
/// Digest of the database that journalctl of systemd 252 and 257 makes of the example.
const EXAMPLE_SHA256: &str = "27e6b8897ebce4f607286cb69a22b706a11ccf718f8672dee8545f96c4a3fc64";

fn new_target(files: &[(&str, &str)]) -> Target {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
    for (path, text) in files {
        target.set_text(path, text).unwrap();
    }
    target
}

#[test]
fn the_database_is_that_of_the_real_program() {
    let mut target = new_target(&[]);
    for (path, text) in files_of(EXAMPLE) {
        target.set_text(path, &text).unwrap();
    }
    target.symlink("/usr/lib/systemd/catalog/f.catalog", "/dev/null").unwrap();
    update(&mut target.files()).unwrap();
    let database = target.tree.read(DATABASE, 1 << 20).unwrap();
    assert_eq!(Digest::of(&database).hex(), EXAMPLE_SHA256, "{} bytes", database.len());
}

#[test]
fn an_error_leaves_the_database() {
    const ID: &str = "-- 0123456789abcdef0123456789abcdef";
    for (name, text, expected) in [
        ("a.catalog", "text\n", "/usr/lib/systemd/catalog/a.catalog:1: Got payload before ID."),
        ("a.catalog", &format!("{ID}\n\n"), "/usr/lib/systemd/catalog/a.catalog:2: No payload text."),
        ("a.catalog", &format!("{ID}\n\n{ID}\nx\n"), "/usr/lib/systemd/catalog/a.catalog:3: No payload text."),
        ("a.catalog", &format!("{ID} d\nx\n"), "/usr/lib/systemd/catalog/a.catalog:1: Language too short."),
        (
            "a.catalog",
            &format!("{ID} {}\nx\n", "d".repeat(32)),
            "/usr/lib/systemd/catalog/a.catalog:1: language too long.",
        ),
        ("a.d.catalog", &format!("{ID}\nx\n"), "/usr/lib/systemd/catalog/a.d.catalog:2: Language too short."),
        ("a.catalog", &"x".repeat(1 << 20), "/usr/lib/systemd/catalog/a.catalog: a line is too long"),
    ] {
        let path = format!("/usr/lib/systemd/catalog/{name}");
        let mut target = new_target(&[(&path, text), ("/var/lib/systemd/catalog/database", "old")]);
        assert_eq!(update(&mut target.files()), Err(expected.to_owned()));
        assert_eq!(target.text_or_empty("/var/lib/systemd/catalog/database").unwrap(), "old");
    }
    let mut target = new_target(&[]);
    target.symlink("/usr/lib/systemd/catalog/a.catalog", "/none").unwrap();
    assert!(update(&mut target.files()).is_err());
}

#[test]
fn without_items_nothing_is_written() {
    let mut target = new_target(&[("/usr/lib/systemd/catalog/a.catalog", "# nothing\n")]);
    update(&mut target.files()).unwrap();
    assert!(target.tree.resolve(DATABASE).is_err());
}

#[test]
fn languages_are_those_of_names() {
    let long = "a".repeat(31);
    for (path, expected) in [
        ("/x/a.catalog", ""),
        ("/x/a.de.catalog", "de"),
        ("/x/a.b.be@latin.catalog", "be@latin"),
        ("/x/a..catalog", ""),
        ("/x.y/a.catalog", ""),
        (&format!("/x/a.{long}.catalog"), &long),
        (&format!("/x/a.{long}b.catalog"), ""),
    ] {
        assert_eq!(String::from_utf8_lossy(language(path.as_bytes())), expected, "{path}");
    }
}

/// All files of this machine, which its journalctl compiles too.
#[test]
fn the_files_of_this_machine_are_compiled_as_by_its_program() {
    let Ok(entries) = fs::read_dir("/usr/lib/systemd/catalog") else { return };
    let paths =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "catalog"));
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    let dir = tempfile::tempdir().unwrap();
    let copies = dir.path().join("usr/lib/systemd/catalog");
    fs::create_dir_all(&copies).unwrap();
    let mut sources: Vec<Source> = Vec::new();
    for path in &paths {
        fs::copy(path, copies.join(path.file_name().unwrap())).unwrap();
        sources.push((path.to_str().unwrap().as_bytes().to_vec(), Some(fs::read(path).unwrap())));
    }
    let Ok(ran) = Command::new("journalctl").arg("--update-catalog").arg("--root").arg(dir.path()).output() else {
        return;
    };
    assert!(ran.status.success(), "{ran:?}");
    let expected = fs::read(dir.path().join("var/lib/systemd/catalog/database")).unwrap();
    assert!(compile(&sources).unwrap() == Some(expected));
}
