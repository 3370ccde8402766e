//! The same packages installed by dpkg itself, onto the same base: what both leave is compared path by path.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use vmbake_disk::tree::{Kind, Tree};

use super::parts::{Part, bake_onto, base_with, control, deb, dir, file, member, owned, package};
use crate::tools::have;

/// What dpkg writes beside the state of packages: locks, its log, and older versions of its files.
const OWN: [&str; 8] = [
    "/var/lib/dpkg/lock",
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/status-old",
    "/var/lib/dpkg/available",
    "/var/lib/dpkg/triggers/Lock",
    "/var/lib/dpkg/triggers/Unincorp",
    "/var/lib/dpkg/updates",
    "/var/log/dpkg.log",
];

/// Mode, owner, group, and what it is: type and content.
type Node = (u32, u32, u32, String);

fn of_tree(tree: &Tree) -> BTreeMap<String, Node> {
    let node = |inode: &vmbake_disk::tree::Inode, path: &[u8]| {
        let what = match &inode.kind {
            Kind::Symlink(to) => format!("-> {}", String::from_utf8_lossy(to)),
            Kind::Directory(_) => "directory".to_owned(),
            _ => String::from_utf8(tree.read(path, 1 << 20).unwrap()).unwrap(),
        };
        // Links have no mode of their own on Linux.
        let mode = if matches!(inode.kind, Kind::Symlink(_)) { 0o777 } else { inode.meta.mode };
        (u32::from(mode), inode.meta.uid, inode.meta.gid, what)
    };
    let all = tree.walk().map(|(path, _, inode)| (path, inode));
    all.map(|(path, inode)| {
        (format!("/{}", String::from_utf8_lossy(&path).trim_start_matches('/')), node(inode, &path))
    })
    .collect()
}

fn of_dir(root: &Path, dir: &Path, all: &mut BTreeMap<String, Node>) {
    let meta = fs::symlink_metadata(dir).unwrap();
    let what = match meta.file_type() {
        kind if kind.is_symlink() => format!("-> {}", fs::read_link(dir).unwrap().to_str().unwrap()),
        kind if kind.is_dir() => "directory".to_owned(),
        _ => fs::read_to_string(dir).unwrap(),
    };
    let path = format!("/{}", dir.strip_prefix(root).unwrap().to_str().unwrap());
    all.insert(path, (meta.mode() & 0o7777, meta.uid(), meta.gid(), what));
    if meta.is_dir() {
        for entry in fs::read_dir(dir).unwrap() {
            of_dir(root, &entry.unwrap().path(), all);
        }
    }
}

/// Writes the base to a directory.
fn write(tree: &Tree, root: &Path) {
    for (path, _, inode) in tree.walk() {
        let at = root.join(std::ffi::OsStr::from_bytes(&path).to_str().unwrap().trim_start_matches('/'));
        match &inode.kind {
            Kind::Directory(_) => fs::create_dir_all(&at).unwrap(),
            Kind::Symlink(to) => symlink(std::ffi::OsStr::from_bytes(to), &at).unwrap(),
            _ => fs::write(&at, tree.read(&path, 1 << 20).unwrap()).unwrap(),
        }
    }
}

fn part(name: &'static str, fields: &str, info: &[(&str, &str)], data: &[Vec<u8>]) -> Part {
    let control = format!("{}Homepage: https://example.org\nX-Own: y\n", control(name, fields));
    package(
        name,
        deb(&control, info, &[[dir("./"), dir("./usr/"), dir("./usr/bin/"), dir("./etc/")].concat(), data.concat()]),
    )
}

/// Packages that meet the base in every way that dpkg allows, in the order of their names, as a bake installs them.
fn parts() -> [Part; 4] {
    let shared = [dir("./usr/share/"), dir("./usr/share/owner/"), file("./usr/share/owner/a", "new\n")];
    let weak = [dir("./usr/share/"), dir("./usr/share/owner/"), file("./usr/share/owner/b", "new\n")];
    let tool = [
        file("./usr/bin/tool", "tool\n"),
        member(b'1', b"./usr/bin/same", b"./usr/bin/tool", b""),
        owned(file("./usr/bin/root", "s\n"), 0o4755, 0, 0),
        owned(file("./usr/bin/set", "s\n"), 0o755, 0, 0),
        owned(file("./usr/bin/other", "o\n"), 0o2640, 7, 8),
        member(b'2', b"./usr/bin/link", b"tool", b""),
        file("./etc/tool.conf", "conf\n"),
    ];
    let triggers = "interest-noawait /usr/share/tool\ninterest tool-named\ninterest /usr/share/more\n";
    let fields = "Multi-Arch: same\nSection: x\nPriority: extra\nConflicts: none\nBreaks: none (<< 1)\nEnhances: e\n\
        Provides: v (= 1)\nSuggests: s\nRecommends: r\nSource: t\nInstalled-Size: 1\nBugs: b\nOrigin: o\n";
    [
        part("empty", "", &[], &[dir("./usr/share/"), dir("./usr/share/empty/")]),
        part("taker", "Replaces: owner (<< 2)\n", &[("md5sums", "0  x\n")], &shared),
        part("tool", fields, &[("triggers", triggers), ("conffiles", "/etc/tool.conf\n"), ("shlibs", "x\n")], &tool),
        part("weak", "", &[("triggers", "interest tool-named\n")], &weak),
    ]
}

#[test]
fn dpkg_leaves_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::metadata(dir.path()).unwrap().uid() == 0;
    if !root || !have(&["dpkg", "dpkg-deb"]) {
        assert!(root || std::env::var_os("CI").is_none(), "CI has to run this as root");
        println!("skipped: needs root and dpkg");
        return;
    }
    let status = "Package: owner\nStatus: install ok installed\nMaintainer: M <m@example.org>\nArchitecture: amd64\n\
        Multi-Arch: same\nVersion: 1.5\nReplaces: weak\nDescription: o\n\n";
    let base = || {
        base_with(&[
            ("/var/lib/dpkg/status", status),
            ("/var/lib/dpkg/info/format", "1\n"),
            (
                "/var/lib/dpkg/info/owner:amd64.list",
                "/.\n/usr\n/usr/share\n/usr/share/owner\n/usr/share/owner/a\n/usr/share/owner/b\n",
            ),
            ("/var/lib/dpkg/info/owner:amd64.md5sums", "0  usr/share/owner/a\n"),
            ("/var/lib/dpkg/arch", "amd64\n"),
            ("/var/lib/dpkg/triggers/File", "/usr/share/none owner:amd64/noawait\n"),
            ("/var/lib/dpkg/diversions", "/usr/bin/tool\n/usr/bin/tool.real\nowner\n"),
            ("/var/lib/dpkg/statoverride", "root root 2750 /usr/bin/set\n"),
            ("/usr/share/owner/a", "old\n"),
            ("/usr/share/owner/b", "old\n"),
            ("/var/log/dpkg.log", ""),
        ])
    };
    let at = dir.path().join("root");
    write(&base(), &at);
    fs::create_dir_all(at.join("var/lib/dpkg/updates")).unwrap();
    for part in parts() {
        let path = dir.path().join(format!("{}.deb", part.name));
        fs::write(&path, &part.bytes).unwrap();
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", at.display())).args(["--force-bad-path", "--force-unsafe-io", "--install"]);
        let output = command.arg(&path).env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let setuid = r#", "setuid": ["/usr/bin/root", "/usr/bin/set", "/usr/bin/other"]"#;
    let (mut expected, mut found) = (BTreeMap::new(), of_tree(&bake_onto(base(), &parts(), setuid).unwrap()));
    of_dir(&at, &at, &mut expected);
    // The temporary directory has its own mode.
    for own in OWN.iter().copied().chain(["/"]) {
        expected.remove(own);
        found.remove(own);
    }
    let different = expected.iter().filter(|(path, node)| found.get(*path) != Some(node));
    let different: Vec<_> = different.map(|(path, node)| (path, node, found.get(path))).collect();
    assert!(different.is_empty(), "path, dpkg's, ours: {different:#?}");
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let verify = Command::new("dpkg").arg(format!("--root={}", at.display())).arg("--audit").output().unwrap();
    assert!(verify.status.success() && verify.stdout.is_empty());
}
