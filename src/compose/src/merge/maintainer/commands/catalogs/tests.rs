//! Catalogs that change. `transcript.txt` has what the programs of Debian wrote; `tests/test_catalogs.py` runs them again.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{Files, Outcome};

use super::super::call::{Ran, call};
use crate::merge::database::Database;
use crate::merge::maintainer;
use crate::merge::place::Target;

const TRANSCRIPT: &str = include_str!("transcript.txt");

/// Directories whose files are compared.
const DIRECTORIES: [&str; 5] = ["/etc/sgml", "/etc/xml", "/opt", "/var/lib/sgml-base", "/var/lib/xml-core"];

fn run(target: &mut Target, database: &mut Database, program: &str, args: &[&str]) -> Ran {
    let (_, _, command) = super::PROGRAMS.iter().find(|(name, ..)| *name == program).unwrap();
    call(target, database, program, args, |system, call| command(system, call).unwrap())
}

fn new_target() -> (Target, Database) {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root.clone(), Origin::default()), Timestamp::default());
    for directory in DIRECTORIES {
        target.directory(directory, root.clone()).unwrap();
    }
    let database = Database::read(&target, "amd64").unwrap();
    (target, database)
}

/// The files of the directories, by path.
fn state(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in DIRECTORIES {
        let Kind::Directory(entries) = &tree.inode(tree.resolve(directory.as_bytes()).unwrap()).kind else { continue };
        for (name, id) in entries {
            let path = format!("{directory}/{}", String::from_utf8_lossy(name));
            if matches!(tree.inode(*id).kind, Kind::File(_)) {
                let text = String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap();
                found.insert(path, text);
            }
        }
    }
    found
}

fn show(text: &str) -> String {
    text.lines().map(|line| format!("|{line}\n")).collect()
}

/// A run in the words of the transcript.
fn told(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>, (outcome, stdout, stderr): &Ran) -> String {
    let mut text = match outcome {
        Outcome::Status(status) => format!("status {status}\n"),
        other => format!("{other:?}\n"),
    };
    for (name, written) in [("stdout", stdout), ("stderr", stderr)] {
        if !written.is_empty() {
            text.push_str(&format!("{name}\n{}", show(written)));
        }
    }
    for (path, content) in now.iter().filter(|(path, content)| before.get(*path) != Some(content)) {
        text.push_str(&format!("new {path}\n{}", show(content)));
    }
    before.keys().filter(|path| !now.contains_key(*path)).for_each(|path| text.push_str(&format!("gone {path}\n")));
    text
}

#[test]
fn catalogs_change_as_by_the_real_programs() {
    let (mut target, mut database) = new_target();
    let mut made = String::new();
    let mut lines = TRANSCRIPT.lines().peekable();
    while let Some(line) = lines.next() {
        let mut given = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            given.push(&line[1..]);
        }
        let before = state(&target.tree);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let told = match word {
            "put" | "bare" => {
                let end = if word == "put" { "\n" } else { "" };
                target.set_text(rest, &format!("{}{end}", given.join("\n"))).unwrap();
                String::new()
            }
            "link" => {
                let (path, to) = rest.split_once(' ').unwrap();
                target.symlink(path, to).unwrap();
                String::new()
            }
            "directory" => {
                target.directory(rest, target.meta(0o755)).unwrap();
                String::new()
            }
            "run" => {
                let ran = run(&mut target, &mut database, rest, &given);
                told(&before, &state(&target.tree), &ran)
            }
            "#" => String::new(),
            _ => continue,
        };
        made.push_str(&format!("{line}\n{}{told}", given.iter().map(|line| format!("|{line}\n")).collect::<String>()));
    }
    assert_eq!(made, TRANSCRIPT);
}

#[test]
fn what_is_not_known_runs_on_the_machine() {
    for (program, args, content) in [
        ("update-catalog", &["--add", "/etc/sgml/a.cat", "/usr/share/a+b"][..], "CATALOG x\n"),
        ("update-catalog", &["--remove", "/etc/sgml/a.cat", ""], "CATALOG x\n"),
        ("update-catalog", &["--add", "/etc/sgml/b.cat", "/x"], "without the template\n"),
        ("update-catalog", &["--add", "/etc/sgml/a.cat"], ""),
        ("update-catalog", &["--test", "--update-super"], ""),
        ("update-catalog", &["--help"], ""),
        ("update-catalog", &["--add", "--remove", "/etc/sgml/a.cat", "/x"], ""),
        ("update-catalog", &[], ""),
        ("update-xmlcatalog", &["--help"], ""),
        ("update-xmlcatalog", &["--add", "--id="], ""),
        ("update-xmlcatalog", &["--add", "--type"], ""),
        ("update-xmlcatalog", &["--ad"], ""),
        ("update-xmlcatalog", &["--add", "/etc/sgml/a.cat"], ""),
        // There is no header.
        (
            "update-xmlcatalog",
            &["--add", "--type", "uri", "--id", "x", "--package", "a", "--local", "/etc/sgml/a.cat"],
            "",
        ),
    ] {
        let (mut target, mut database) = new_target();
        target.set_text("/etc/sgml/a.cat", content).unwrap();
        let (outcome, ..) = run(&mut target, &mut database, program, args);
        assert!(matches!(outcome, Outcome::Deferred(_)), "{program} {args:?}: {outcome:?}");
    }
}

#[test]
fn the_super_catalog_is_left_to_the_trigger() {
    let (mut target, _) = new_target();
    let stanza = "Package: sgml-base\nStatus: install ok installed\nArchitecture: all\nVersion: 1.31+nmu1\n";
    target.set_text("/var/lib/dpkg/status", stanza).unwrap();
    target.set_text("/var/lib/dpkg/triggers/File", "/etc/sgml sgml-base\n").unwrap();
    let mut database = Database::read(&target, "amd64").unwrap();
    let args = ["--quiet", "--add", "--super", "/etc/sgml/a.cat"];
    let (outcome, ..) = run(&mut target, &mut database, "update-catalog", &args);
    assert_eq!(outcome, Outcome::Status(0));
    let pending = database.pending.get("sgml-base").unwrap();
    assert_eq!(pending.iter().collect::<Vec<_>>(), ["/etc/sgml"]);
}

#[test]
fn versions_are_identified_by_their_digests() {
    let (mut target, mut database) = new_target();
    for (name, _, _) in super::PROGRAMS {
        let program = format!("/usr/sbin/{name}");
        target.set_text(&program, "#!/usr/bin/perl\n").unwrap();
        target.files().set_mode(program.as_bytes(), 0o755).unwrap();
        let source = format!("#!/bin/sh\n{name} --update-super\n");
        let (source, args) = (source.as_bytes(), &["configure", ""][..]);
        let call =
            maintainer::Call { package: "p", stem: "p", arch: "all", script: "postinst", source, args, control: None };
        let ran = maintainer::run(&mut target, &mut database, &call);
        assert!(matches!(ran, Ok(maintainer::Ran::Waits(_))), "{ran:?}");
    }
}
