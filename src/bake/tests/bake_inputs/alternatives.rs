//! Alternatives that packages add, compared with update-alternatives itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use vmbake_common::digest::Digest;
use vmbake_compose::merge::{AlternativeFault, ContentFault};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::parts::{Part, bake_onto, base_with, control, deb, file, link, package, refused, text};
use crate::tools::have;

const PAGER: &str = "auto\n/usr/bin/pager\npager.1\n/usr/man/pager.1\n\n/usr/bin/less\n77\n/usr/man/less.1\n\n";
const SCRIPT: &str = "#!/bin/sh\nupdate-alternatives-of-mine\n";
const FILES: [&str; 5] = ["/usr/bin/less", "/usr/man/less.1", "/usr/bin/most", "/usr/bin/pg", "/usr/man/pg.1"];

/// A base with the group `pager`, which points to `less`.
fn base(group: &str) -> Tree {
    let mut files: Vec<(&str, &str)> = FILES.iter().map(|path| (*path, "")).collect();
    files.push(("/var/lib/dpkg/alternatives/pager", group));
    let mut tree = base_with(&files);
    let origin = tree.add_origin(Origin::default());
    for (path, to) in LINKS {
        let meta = Metadata::root(0o777, Timestamp::default());
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        tree.place(path.as_bytes(), Inode { meta, kind: Kind::Symlink(to.as_bytes().to_vec()), origin }).unwrap();
    }
    tree
}

const LINKS: [(&str, &str); 4] = [
    ("/etc/alternatives/pager", "/usr/bin/less"),
    ("/usr/bin/pager", "/etc/alternatives/pager"),
    ("/etc/alternatives/pager.1", "/usr/man/less.1"),
    ("/usr/man/pager.1", "/etc/alternatives/pager.1"),
];

fn part() -> Part {
    package("p", deb(&control("p", ""), &[("postinst", SCRIPT)], &[file("./usr/bin/p", "")]))
}

fn keys(alternatives: &str) -> String {
    let sha256 = Digest::of(SCRIPT.as_bytes()).hex();
    format!(
        r#", "scripts": [{{"package": "p", "script": "postinst", "sha256": "{sha256}", "alternatives": [{alternatives}]}}]"#
    )
}

/// A choice: path, priority, and its slave's path.
type Choice = (&'static str, i32, Option<&'static str>);

fn json((path, priority, slave): &Choice) -> String {
    let slaves = slave.map(|slave| format!(r#""pager.1": ["/usr/man/pager.1", "{slave}"]"#)).unwrap_or_default();
    format!(
        r#"{{"link": "/usr/bin/pager", "name": "pager", "path": "{path}", "priority": {priority}, "slaves": {{{slaves}}}}}"#
    )
}

#[test]
fn choices_join_groups_as_update_alternatives_adds_them() {
    let manual = PAGER.replace("auto", "manual");
    let cases: [(&str, &str, &[Choice]); 8] = [
        ("lower", PAGER, &[("/usr/bin/most", 10, None)]),
        ("higher, without a slave", PAGER, &[("/usr/bin/most", 100, None)]),
        ("higher, with a slave", PAGER, &[("/usr/bin/pg", 100, Some("/usr/man/pg.1"))]),
        ("higher, with a slave that is not there", PAGER, &[("/usr/bin/pg", 100, Some("/usr/man/none.1"))]),
        ("equal", PAGER, &[("/usr/bin/most", 77, None)]),
        ("manual", &manual, &[("/usr/bin/pg", 100, Some("/usr/man/pg.1"))]),
        ("a new group", "", &[("/usr/bin/pg", 5, Some("/usr/man/pg.1")), ("/usr/bin/most", 5, None)]),
        ("three", PAGER, &[("/usr/bin/most", 90, None), ("/usr/bin/pg", 80, None)]),
    ];
    if !have(&["update-alternatives"]) {
        return;
    }
    for (label, group, choices) in cases {
        let alternatives = choices.iter().map(json).collect::<Vec<_>>().join(", ");
        let tree = match group {
            "" => base_with(&FILES.map(|path| (path, ""))),
            _ => base(group),
        };
        let tree = bake_onto(tree, &[part()], &keys(&alternatives)).expect(label);

        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path.trim_start_matches('/'));
        for path in ["/etc/alternatives", "/usr/bin", "/usr/man", "/var/lib/dpkg/alternatives", "/var/log"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        FILES.iter().for_each(|path| fs::write(at(path), "").unwrap());
        if !group.is_empty() {
            fs::write(at("/var/lib/dpkg/alternatives/pager"), group).unwrap();
            LINKS.iter().for_each(|(path, to)| symlink(to, at(path)).unwrap());
        }
        for (path, priority, slave) in choices {
            let mut command = Command::new("update-alternatives");
            command.arg("--root").arg(dir.path()).args(["--install", "/usr/bin/pager", "pager", path]);
            command.arg(priority.to_string());
            if let Some(slave) = slave {
                command.args(["--slave", "/usr/man/pager.1", "pager.1", slave]);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{label}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let expected = fs::read_to_string(at("/var/lib/dpkg/alternatives/pager")).unwrap();
        assert_eq!(text(&tree, "/var/lib/dpkg/alternatives/pager"), expected, "{label}");
        for (path, _) in LINKS {
            let expected = fs::read_link(at(path)).map(|to| to.to_str().unwrap().to_owned()).ok();
            let found = tree.lookup(path.as_bytes()).map(|_| link(&tree, path));
            assert_eq!(found, expected, "{label}: {path}");
        }
    }
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    let own = str::to_owned;
    let entry = |link: &str, path: &str, slave: &str| {
        format!(
            r#"{{"link": "{link}", "name": "pager", "path": "{path}", "priority": 100,
            "slaves": {{"pager.1": ["{slave}", "/usr/man/pg.1"]}}}}"#
        )
    };
    for (label, group, entry, expected) in [
        (
            "link",
            PAGER,
            entry("/bin/other", "/usr/bin/pg", "/usr/man/pager.1"),
            AlternativeFault::Link { found: own("/usr/bin/pager"), wanted: own("/bin/other") },
        ),
        (
            "slave",
            PAGER,
            entry("/usr/bin/pager", "/usr/bin/pg", "/x"),
            AlternativeFault::SlaveLink { name: own("pager.1"), found: own("/usr/man/pager.1"), wanted: own("/x") },
        ),
        (
            "choice",
            PAGER,
            entry("/usr/bin/pager", "/none", "/usr/man/pager.1"),
            AlternativeFault::NoChoice { path: own("/none") },
        ),
        ("damaged", "auto\n", entry("/usr/bin/pager", "/usr/bin/pg", "/x"), AlternativeFault::Group),
    ] {
        let (path, fault) = refused(base(group), &[part()], &keys(&entry));
        let ContentFault::Alternative(found) = fault else { panic!("{label}: {fault}") };
        assert_eq!((path.as_str(), found), ("/var/lib/dpkg/alternatives/pager", expected), "{label}");
    }
    let taken = entry("/usr/bin/pager", "/usr/bin/pg", "/x").replace("\"name\": \"pager\"", "\"name\": \"other\"");
    let (path, fault) = refused(
        base_with(&[("/var/lib/dpkg/alternatives/pager", PAGER), ("/usr/bin/pg", "")]),
        &[part()],
        &keys(&taken),
    );
    let expected = "cannot add the choice: alternative pager.1 can't be slave of other: it is a slave of pager";
    assert_eq!((path.as_str(), fault.to_string()), ("/var/lib/dpkg/alternatives/other", expected.to_owned()));
    let script = "#!/bin/sh\n# Automatically added by dh_installalternatives/13\n\
        update-alternatives --install /usr/bin/x ../../../../etc/x /usr/bin/p 1\n# End automatically added section\n";
    let bad = package("p", deb(&control("p", ""), &[("postinst", script)], &[file("./usr/bin/p", "")]));
    let error = bake_onto(base(PAGER), &[bad], "").unwrap_err();
    assert!(error.contains("alternative name (../../../../etc/x) must not contain '/' and spaces"), "{error}");
    let base = base_with(&[("/usr/bin/pager", "a program"), ("/usr/bin/pg", "")]);
    let error = bake_onto(base, &[part()], &keys(&json(&("/usr/bin/pg", 1, None)))).unwrap_err();
    assert_eq!(error, "/usr/bin/pager: is a regular file, but the alternative pager needs a link there");
}
