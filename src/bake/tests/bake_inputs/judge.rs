//! Compares each path of the result with that of dpkg, which installs the same packages onto the same base.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::parts::{Part, bake_onto, base_with, control, deb, dir, file, member, owned, package};
use super::upgrades::{Versions, versions};
use crate::tools::have;

/// Files that dpkg writes in addition to the state of packages: locks, its log, and older versions of its files.
pub(super) const OWN: [&str; 8] = [
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
pub(super) type Node = (u32, u32, u32, String);

pub(super) fn of_tree(tree: &Tree) -> BTreeMap<String, Node> {
    let node = |inode: &vmbake_disk::tree::Inode, path: &[u8]| {
        let what = match &inode.kind {
            Kind::Symlink(to) => format!("-> {}", String::from_utf8_lossy(to)),
            Kind::Directory(_) => "directory".to_owned(),
            _ => String::from_utf8(tree.read(path, 1 << 20).unwrap()).unwrap(),
        };
        // Links have no mode on Linux.
        let mode = if matches!(inode.kind, Kind::Symlink(_)) { 0o777 } else { inode.meta.mode };
        (u32::from(mode), inode.meta.uid, inode.meta.gid, what)
    };
    let all = tree.walk().map(|(path, _, inode)| (path, inode));
    all.map(|(path, inode)| {
        (format!("/{}", String::from_utf8_lossy(&path).trim_start_matches('/')), node(inode, &path))
    })
    .collect()
}

pub(super) fn of_dir(root: &Path, dir: &Path, all: &mut BTreeMap<String, Node>) {
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
pub(super) fn write(tree: &Tree, root: &Path) {
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
        part(
            "tool",
            fields,
            &[("triggers", triggers), ("conffiles", "/etc/tool.conf\n/etc/tool/none.conf\n"), ("shlibs", "x\n")],
            &tool,
        ),
        part("weak", "", &[("triggers", "interest tool-named\n")], &weak),
    ]
}

#[test]
fn dpkg_leaves_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::metadata(dir.path()).unwrap().uid() == 0;
    if !root || !have(&["dpkg", "dpkg-deb"]) {
        return crate::tools::skip::skip("needs root and dpkg");
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
    assert_is_dpkgs(&at, &bake_onto(base(), &parts(), setuid).unwrap(), &OWN);
    let verify = Command::new("dpkg").arg(format!("--root={}", at.display())).arg("--audit").output().unwrap();
    assert!(verify.status.success() && verify.stdout.is_empty());
}

/// A tree with nothing in it, not even a database.
#[test]
fn dpkg_creates_the_same_database() {
    let dir = tempfile::tempdir().unwrap();
    if fs::metadata(dir.path()).unwrap().uid() != 0 || !have(&["dpkg", "dpkg-deb"]) {
        return crate::tools::skip::skip("needs root and dpkg");
    }
    let parts = [
        part("first", "", &[("triggers", "interest-noawait /usr/share/first\n")], &[file("./usr/bin/first", "1\n")]),
        part("second", "Multi-Arch: same\n", &[], &[file("./usr/bin/second", "2\n")]),
    ];
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    for part in &parts {
        dpkg(&[], &root, part.name, &part.bytes);
    }
    let empty = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    // Each call of dpkg keeps the file before; a bake is one call.
    assert_is_dpkgs(&root, &bake_onto(empty, &parts, "").unwrap(), &["/var/lib/dpkg/status-old"]);
}

/// Whether dpkg can run here as root would, and with what in front of it.
pub(super) fn as_root(dir: &Path) -> Option<Vec<&'static str>> {
    if fs::metadata(dir).unwrap().uid() == 0 {
        return Some(Vec::new());
    }
    let unshare = vec!["unshare", "--map-root-user"];
    let works = Command::new(unshare[0]).args(&unshare[1..]).arg("true").status().is_ok_and(|status| status.success());
    works.then_some(unshare)
}

/// Lets dpkg install packages into `root`; where it would ask, what is there stays.
pub(super) fn dpkg(prefix: &[&str], root: &Path, name: &str, bytes: &[u8]) {
    let path = root.with_extension(format!("{name}.deb"));
    fs::write(&path, bytes).unwrap();
    let words: Vec<&str> = prefix.iter().copied().chain(["dpkg"]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(format!("--root={}", root.display())).arg("--force-confold");
    let output =
        command.args(["--force-bad-path", "--force-unsafe-io", "--install"]).arg(&path).env("LC_ALL", "C").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Manual changes to a base after the old versions were installed.
fn lived_with(root: &Path) {
    let at = |path: &str| root.join(path);
    for name in ["edited", "both"] {
        fs::write(at("etc/conf").join(name), "mine\n").unwrap();
    }
    fs::write(at("etc/conf/equal"), "equal 2\n").unwrap();
    fs::write(at("etc/conf/taken"), "mine\n").unwrap();
    fs::write(at("etc/conf/both.dpkg-old"), "older\n").unwrap();
    for name in ["deleted", "missing", "went"] {
        fs::remove_file(at("etc/conf").join(name)).unwrap();
    }
    let mode = |path: &str, mode| fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
    mode("etc/conf/newer", 0o600);
    mode("usr/share/files/closed", 0o700);
    mode("usr/share/files/kept", 0o600);
    fs::write(at("usr/share/files/full/own"), "mine\n").unwrap();
    fs::rename(at("usr/share/files/elsewhere"), at("srv")).unwrap();
    symlink("../../../srv", at("usr/share/files/elsewhere")).unwrap();
}

/// The tree below a directory; the current user counts as root.
pub(super) fn tree_of(root: &Path) -> Tree {
    let mut tree = Tree::new(
        Metadata::root(0o755, Timestamp::default()),
        Origin { layer: "base".to_owned(), ..Origin::default() },
    );
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let mut links: BTreeMap<u64, String> = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = format!("/{}", path.strip_prefix(root).unwrap().to_str().unwrap());
            let kind = if meta.is_dir() {
                todo.push(path);
                Kind::directory()
            } else if meta.is_symlink() {
                Kind::Symlink(fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else {
                if let Some(first) = links.insert(meta.ino(), name.clone()) {
                    let id = tree.lookup(first.as_bytes()).unwrap();
                    let (dir, name) = tree.locate(name.as_bytes()).unwrap().unwrap();
                    tree.link(dir, name, id).unwrap();
                    continue;
                }
                let bytes = fs::read(&path).unwrap();
                let len = bytes.len() as u64;
                Kind::File(Map::whole(tree.sources_mut().add(Arc::new(bytes)), 0, len))
            };
            let mode = u16::try_from(meta.mode() & 0o7777).unwrap();
            tree.place(name.as_bytes(), Inode { meta: Metadata::root(mode, Timestamp::default()), kind, origin })
                .unwrap();
        }
    }
    tree
}

#[test]
fn dpkg_upgrades_in_the_same_way() {
    let dir = tempfile::tempdir().unwrap();
    let Some(prefix) = as_root(dir.path()).filter(|_| have(&["dpkg", "dpkg-deb"])) else {
        return crate::tools::skip::skip("needs root, or a user namespace, and dpkg");
    };
    let root = dir.path().join("root");
    write(
        &base_with(&[("/var/lib/dpkg/arch", "amd64\n"), ("/var/lib/dpkg/status", ""), ("/var/log/dpkg.log", "")]),
        &root,
    );
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    let all = versions();
    for (name, old) in all.iter().filter_map(|Versions { name, old, .. }| Some((name, old.as_ref()?))) {
        dpkg(&prefix, &root, name, old);
    }
    lived_with(&root);
    let base = tree_of(&root);
    let mut parts = Vec::new();
    for (name, new) in all.iter().filter_map(|Versions { name, new, .. }| Some((name, new.as_ref()?))) {
        dpkg(&prefix, &root, name, new);
        parts.push(package(name, new.clone()));
    }
    let names: Vec<String> = parts.iter().map(|part| format!("{:?}", part.name)).collect();
    let tree = bake_onto(base, &parts, &format!(r#", "upgrade": [{}]"#, names.join(", "))).unwrap();
    assert_is_dpkgs(&root, &tree, &OWN);
    let same_file = |a: &str, b: &str| tree.lookup(a.as_bytes()) == tree.lookup(b.as_bytes());
    assert!(same_file("/usr/share/files/first", "/usr/share/files/second"), "one inode, two names");
}

/// Fails unless a tree has the files that dpkg left below `root`, without `own_files`, which only dpkg writes.
pub(super) fn assert_is_dpkgs(root: &Path, tree: &Tree, own_files: &[&str]) {
    let (mut expected, mut found) = (BTreeMap::new(), of_tree(tree));
    of_dir(root, root, &mut expected);
    let own = fs::metadata(root).unwrap().uid();
    for node in expected.values_mut() {
        // The user that is root for dpkg.
        node.1 = if node.1 == own { 0 } else { node.1 };
        node.2 = if own == 0 { node.2 } else { 0 };
    }
    // The temporary directory has its own mode.
    for path in own_files.iter().copied().chain(["/"]) {
        expected.remove(path);
        found.remove(path);
    }
    let different = expected.iter().filter(|(path, node)| found.get(*path) != Some(node));
    let different: Vec<_> = different.map(|(path, node)| (path, node, found.get(path))).collect();
    assert!(different.is_empty(), "path, dpkg's, ours: {different:#?}");
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
}
