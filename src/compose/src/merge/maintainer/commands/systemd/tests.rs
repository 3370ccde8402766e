//! Scripts that call the programs, in different versions of the packages.

use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use super::version;
use crate::merge::database::Database;
use crate::merge::maintainer::{Call, Ran, run};
use crate::merge::place::Target;
use crate::merge::triggers;

const HWDB: &[u8] = b"/usr/lib/udev/hwdb.bin";
const CATALOG: &[u8] = b"/var/lib/systemd/catalog/database";

/// Files of both databases, their programs, and packages with a version.
fn image(version: &str) -> Target {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
    target.symlink("/lib", "usr/lib").unwrap();
    let stanza = |name: &str| {
        format!("Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n")
    };
    for (path, text) in [
        ("/usr/bin/systemd-hwdb", "\x7fELF"),
        ("/usr/bin/journalctl", "\x7fELF"),
        ("/usr/lib/udev/hwdb.d/a.hwdb", "a\n B=c\n"),
        ("/usr/lib/systemd/catalog/a.catalog", "-- 0123456789abcdef0123456789abcdef\nSubject: A\n"),
        ("/var/lib/dpkg/info/udev.triggers", "interest-noawait /usr/lib/udev/hwdb.d\n"),
        ("/var/lib/dpkg/triggers/File", "/usr/lib/systemd/catalog systemd/noawait\n"),
        ("/var/lib/dpkg/status", &[stanza("systemd"), stanza("udev")].concat()),
    ] {
        target.set_text(path, text).unwrap();
    }
    target
}

/// How a postinst ends.
fn ran(target: &mut Target, database: &mut Database, args: &[&str], command: &str) -> Ran {
    let source = format!("#!/bin/sh\nset -e\n{command}\n");
    let source = source.as_bytes();
    let call = Call { package: "udev", stem: "udev", arch: "amd64", script: "postinst", source, args, control: None };
    run(target, database, &call).unwrap()
}

#[test]
fn versions_are_those_of_packages() {
    for (text, expected) in [
        ("252.39-1~deb12u2", Some(252)),
        ("257.13-1~deb13u1", Some(257)),
        ("257~rc1-1", Some(257)),
        ("255.4-1ubuntu8", None),
        ("258-1", None),
        ("1:257-1", None),
    ] {
        let database = Database::read(&image(text), "amd64").unwrap();
        assert_eq!(version(&database, "udev"), expected, "{text}");
        assert_eq!(version(&database, "other"), None);
    }
}

#[test]
fn known_versions_are_compiled() {
    let triggered = &["triggered", "/usr/lib/udev/hwdb.d"][..];
    for (text, is_known) in [("252.39-1", true), ("257.13-1", true), ("258-1", false)] {
        for (args, command) in [
            (triggered, "systemd-hwdb --usr update || true"),
            (&["configure", ""], "/usr/bin/systemd-hwdb update --usr"),
        ] {
            let mut target = image(text);
            let mut database = Database::read(&target, "amd64").unwrap();
            let done = ran(&mut target, &mut database, args, command);
            assert_eq!(done == Ran::Done, is_known || args != triggered, "{text} {command}");
            assert_eq!(target.tree.resolve(HWDB).is_ok(), is_known, "{text} {command}");
            assert_eq!(database.left.is_empty(), is_known || args == triggered, "{text} {command}");
        }
        let mut target = image(text);
        let mut database = Database::read(&target, "amd64").unwrap();
        let done = ran(&mut target, &mut database, &["configure", ""], "journalctl --update-catalog");
        assert_eq!((done, target.tree.resolve(CATALOG).is_ok()), (Ran::Done, is_known), "{text}");
        triggers::activate_path(&target, &mut database, b"/usr/lib/systemd/catalog/b.catalog").unwrap();
        assert_eq!(database.pending.contains_key("systemd"), is_known, "{text}");
    }
}

#[test]
fn other_calls_are_left_to_the_machine() {
    for (command, path) in [
        ("systemd-hwdb --strict --usr update", HWDB),
        ("SYSTEMD_HWDB_UPDATE_BYPASS=1 systemd-hwdb --usr update", HWDB),
        ("journalctl --flush", CATALOG),
        ("journalctl --root=/x --update-catalog", CATALOG),
        ("SYSTEMD_CATALOG=/x journalctl --update-catalog", CATALOG),
    ] {
        let mut target = image("257.13-1");
        let mut database = Database::read(&target, "amd64").unwrap();
        assert_eq!(ran(&mut target, &mut database, &["configure", ""], command), Ran::Done, "{command}");
        assert!(target.tree.resolve(path).is_err(), "{command}");
    }
    let mut target = image("257.13-1");
    let mut database = Database::read(&target, "amd64").unwrap();
    target.remove("/usr/bin/systemd-hwdb").unwrap();
    let done = ran(&mut target, &mut database, &["configure", ""], "systemd-hwdb --usr update || echo $? >/status");
    assert_eq!((done, target.text_or_empty("/status").unwrap().as_str()), (Ran::Done, "127\n"));
}
