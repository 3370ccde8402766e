//! A machine on which profiles come and go. `transcript.txt` has what the program of Debian 13 wrote there.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_shell::Outcome;

use super::super::call::call;
use super::update;
use crate::merge::database::Database;
use crate::merge::place::Target;

const TRANSCRIPT: &str = include_str!("transcript.txt");

fn run(target: &mut Target, database: &mut Database, args: &[&str]) {
    let (outcome, ..) =
        call(target, database, "pam-auth-update", args, |system, call| update(system, call, true).unwrap());
    assert_eq!(outcome, Outcome::Status(0), "{args:?}");
    database.debconf.write(target).unwrap();
}

/// The configuration, its state, and the answers of debconf, by name.
fn state(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for directory in ["/etc/pam.d", "/var/lib/pam"] {
        let Kind::Directory(entries) = &tree.inode(tree.resolve(directory.as_bytes()).unwrap()).kind else { continue };
        for name in entries.keys() {
            let path = format!("{directory}/{}", String::from_utf8_lossy(name));
            let text = String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap();
            found.insert(path, text);
        }
    }
    let answers = tree.read(b"/var/cache/debconf/config.dat", 1 << 20).unwrap_or_default();
    for stanza in String::from_utf8(answers).unwrap().split("\n\n") {
        if let Some((name, text)) = stanza.strip_prefix("Name: ").and_then(|stanza| stanza.split_once('\n')) {
            found.insert(format!("debconf {name}"), format!("{}\n", text.trim_end_matches('\n')));
        }
    }
    found
}

#[test]
fn profiles_come_and_go_as_by_the_real_program() {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root.clone(), Origin::default()), Timestamp::default());
    for directory in ["/etc/pam.d", "/var/lib/pam"] {
        target.directory(directory, root.clone()).unwrap();
    }
    let mut database = Database::read(&target, "amd64").unwrap();
    let (mut made, mut before) = (String::new(), BTreeMap::new());
    let mut lines = TRANSCRIPT.lines().peekable();
    while let Some(line) = lines.next() {
        let mut text = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            text.push_str(&format!("{}\n", &line[1..]));
        }
        let show = |text: &str| text.lines().map(|line| format!("|{line}\n")).collect::<String>();
        if line.starts_with("new ") {
            continue;
        }
        made.push_str(&format!("{line}\n{}", show(&text)));
        if let Some(path) = line.strip_prefix("put ") {
            target.set_text(path, &text).unwrap();
            before = state(&target.tree);
        } else if let Some(args) = line.strip_prefix("run") {
            run(&mut target, &mut database, &args.split_whitespace().collect::<Vec<_>>());
            let now = state(&target.tree);
            let new = now.iter().filter(|(name, text)| before.get(*name) != Some(text));
            made.extend(new.map(|(name, text)| format!("new {name}\n{}", show(text))));
            before = now;
        }
    }
    assert_eq!(made, TRANSCRIPT);
}

/// What runs on the machine instead, in any other version.
#[test]
fn versions_are_told_apart_by_their_digests() {
    for version in super::VERSIONS {
        assert_eq!(version.sha256.len(), 64);
    }
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
    target.set_text("/usr/sbin/pam-auth-update", "#!/usr/bin/perl -w\n").unwrap();
    assert!(super::version(&target.files()).is_none());
}
