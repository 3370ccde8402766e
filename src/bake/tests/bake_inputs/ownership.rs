//! Files in several packages, diversions, and owners and modes that are set for paths.

use super::parts::{BASE_STATUS, Part, bake_onto, base_with, control, deb, dir, file, member, owned, package, text};

/// A base in which `owner` has two files, one of which it has diverted.
fn files() -> Vec<(&'static str, String)> {
    let status = format!(
        "{BASE_STATUS}Package: owner\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: same\nVersion: 1.5\n\
         Replaces: weak\n\n"
    );
    vec![
        ("/var/lib/dpkg/status", status),
        ("/usr/share/owner/a", "old\n".to_owned()),
        ("/usr/share/owner/b", "old\n".to_owned()),
        (
            "/var/lib/dpkg/info/owner:amd64.list",
            "/.\n/usr\n/usr/share\n/usr/share/owner\n/usr/share/owner/a\n/usr/share/owner/b\n".to_owned(),
        ),
        ("/var/lib/dpkg/diversions", "/usr/bin/tool\n/usr/bin/tool.real\nowner\n/etc/local\n/etc/mine\n:\n".to_owned()),
        ("/var/lib/dpkg/statoverride", "root daemon 2755 /usr/bin/set\n#7 nobody 0640 /usr/bin/no\n".to_owned()),
        ("/etc/group", "root:x:0:\ndaemon:x:1:\n".to_owned()),
    ]
}

fn run(parts: &[Part]) -> Result<vmbake_disk::tree::Tree, String> {
    with_setuid(parts, "")
}

/// The same, with the path of the set-uid file.
fn with_setuid(parts: &[Part], path: &str) -> Result<vmbake_disk::tree::Tree, String> {
    let keys = if path.is_empty() { String::new() } else { format!(r#", "setuid": ["{path}"]"#) };
    let files = files();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    bake_onto(base_with(&files), parts, &keys)
}

fn one(name: &'static str, fields: &str, data: &[Vec<u8>]) -> Part {
    package(name, deb(&control(name, fields), &[("md5sums", "")], data))
}

#[test]
fn a_file_of_another_package_is_refused() {
    for (fields, path, expected) in [
        ("", "./usr/share/owner/a", "/usr/share/owner/a: taker contains it, but it is also in package owner (1.5)"),
        ("Replaces: owner (<< 1.5)\n", "./usr/share/owner/a", "also in package owner (1.5)"),
        ("Replaces: other\n", "./usr/share/owner/a", "also in package owner (1.5)"),
        (
            "",
            "./usr/bin/tool.real",
            "/usr/bin/tool.real: is the diversion of /usr/bin/tool, but also contained in taker",
        ),
        ("", "./usr/bin/no", "/var/lib/dpkg/statoverride: names the group \"nobody\", which is not in /etc/group"),
    ] {
        let error = run(&[one("taker", fields, &[file(path, "new\n")])]).expect_err(fields);
        assert!(error.contains(expected), "{fields}: {error}");
    }
    let both = [one("a", "", &[file("./lib/x", "")]), one("b", "", &[file("./usr/lib/x", "")])];
    assert_eq!(run(&both).unwrap_err(), "/usr/lib/x: b contains it, but it is also in package a (1.0-1)");
    let all = [file("./usr/share/owner/a", ""), file("./usr/share/owner/b", "")];
    let error = run(&[one("taker", "Replaces: owner\n", &all)]).unwrap_err();
    assert!(error.contains("loses its last file /usr/share/owner/b"), "{error}");
}

#[test]
fn replaces_moves_files() {
    let data = [dir("./usr/"), dir("./usr/share/"), dir("./usr/share/owner/"), file("./usr/share/owner/a", "new\n")];
    let tree = run(&[one("taker", "Replaces: other, owner (<< 2)\n", &data)]).unwrap();
    assert_eq!(text(&tree, "/usr/share/owner/a"), "new\n");
    assert_eq!(
        text(&tree, "/var/lib/dpkg/info/owner:amd64.list"),
        "/.\n/usr\n/usr/share\n/usr/share/owner\n/usr/share/owner/b\n",
        "directories are shared"
    );

    // The other way round: what is installed replaces the new package.
    let tree = run(&[one("weak", "", &data)]).unwrap();
    assert_eq!(text(&tree, "/usr/share/owner/a"), "old\n");
    assert_eq!(text(&tree, "/var/lib/dpkg/info/weak.list"), "/usr\n/usr/share\n/usr/share/owner\n");
    let linked = [data.concat(), member(b'1', b"./usr/x", b"./usr/share/owner/a", b"")];
    let error = run(&[one("weak", "", &linked)]).unwrap_err();
    assert!(error.contains("is a hard link to /usr/share/owner/a, which still belongs to another package"), "{error}");

    // Two new packages.
    let tree = run(&[
        one("a", "", &[file("./opt/x", "a"), file("./opt/y", "a")]),
        one("b", "Replaces: a\n", &[file("./opt/x", "b")]),
    ]);
    let tree = tree.unwrap();
    assert_eq!((text(&tree, "/opt/x"), text(&tree, "/var/lib/dpkg/info/a.list")), ("b".into(), "/opt/y\n".into()));
}

#[test]
fn diversions_and_overrides_of_the_base_apply() {
    let data = [
        file("./usr/bin/tool", "new\n"),
        member(b'1', b"./usr/bin/same", b"./usr/bin/tool", b""),
        owned(file("./usr/bin/set", ""), 0o4711, 3, 4),
        file("./etc/local", "conf\n"),
    ];
    let info = [("md5sums", ""), ("conffiles", "/etc/local\n")];
    let tree = with_setuid(&[package("p", deb(&control("p", ""), &info, &data))], "/usr/bin/set").unwrap();
    assert_eq!((text(&tree, "/usr/bin/tool.real"), text(&tree, "/etc/mine")), ("new\n".into(), "conf\n".into()));
    assert!(tree.lookup(b"/usr/bin/tool").is_none() && tree.lookup(b"/etc/local").is_none());
    assert_eq!(tree.lookup(b"/usr/bin/same"), tree.lookup(b"/usr/bin/tool.real"), "one inode, two names");
    let list = text(&tree, "/var/lib/dpkg/info/p.list");
    assert_eq!(list, "/usr/bin/tool\n/usr/bin/same\n/usr/bin/set\n/etc/local\n");
    assert!(text(&tree, "/var/lib/dpkg/status").contains("Conffiles:\n /etc/local b9a771b420047cfaa3543e66c78f44f6\n"));
    let meta = &tree.inode(tree.lookup(b"/usr/bin/set").unwrap()).meta;
    assert_eq!((meta.mode, meta.uid, meta.gid), (0o2755, 0, 1));
    let owner = one("owner2", "", &[owned(file("./usr/bin/x", ""), 0o4755, 0, 1)]);
    let tree = with_setuid(&[owner], "/usr/bin/x").unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/usr/bin/x").unwrap()).meta.mode, 0o4755, "an unset mode is unchanged");
}

#[test]
fn capabilities_survive() {
    let value = b"\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    let data = [super::parts::pax("SCHILY.xattr.security.capability", value), file("./usr/bin/bind", "")];
    let tree = with_setuid(&[one("p", "", &data)], "/usr/bin/bind").unwrap();
    let meta = &tree.inode(tree.lookup(b"/usr/bin/bind").unwrap()).meta;
    assert_eq!(meta.xattrs[b"security.capability".as_slice()], value);
}

#[test]
fn damaged_state_of_the_base_is_refused() {
    for (path, content, expected) in [
        ("/var/lib/dpkg/diversions", "/a\n/b\n", "diversions: expected three lines for each diversion"),
        ("/var/lib/dpkg/statoverride", "root root 9 /x\n", "is invalid: expected a user, a group, a mode and a path"),
        ("/var/lib/dpkg/statoverride", "root root 0755\n", "is invalid: expected a user, a group, a mode and a path"),
    ] {
        let error = bake_onto(base_with(&[(path, content)]), &[one("p", "", &[])], "").expect_err(content);
        assert!(error.contains(expected), "{error}");
    }
}
