//! Paths that `hygiene` removes from a base that was in use.

use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_query::lint::{LintStatus, lint};

use super::parts::{
    Part, archive, bake_layers, bake_layers_onto, bake_onto, base, base_with, file, program, tar, warnings,
};

const HYGIENE: &str = include_str!("../../../../layers/hygiene/layer.json");

/// The base with more files, in separate directories.
fn used(paths: &[&str]) -> Tree {
    let mut tree = base();
    let meta = Metadata::root(0o755, Timestamp::default());
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    for path in paths {
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        let source = tree.sources_mut().add(Arc::new(b"used".to_vec()));
        let inode = Inode { meta: meta.clone(), kind: Kind::File(Map::whole(source, 0, 4)), origin };
        tree.place(path.as_bytes(), inode).unwrap();
    }
    tree
}

#[test]
fn files_below_a_directory_go_and_directories_stay() {
    let mut tree = used(&["/var/log/a", "/var/log/b/c/d", "/var/logs/e", "/var/file"]);
    let link = Inode {
        meta: Metadata::default(),
        kind: Kind::Symlink(b"../../etc".to_vec()),
        origin: tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() }),
    };
    tree.place(b"/var/log/etc", link).unwrap();
    let keys = r#", "remove": ["/var/log/**", "/var/file/**", "/var/missing/**"]"#;
    let baked = bake_onto(tree, &[], keys).unwrap();
    let there = |path: &str| baked.lookup(path.as_bytes()).is_some();
    for (path, expected) in [
        ("/var/log/a", false),
        ("/var/log/b/c/d", false),
        ("/var/log/b/c", true),
        ("/var/log/etc", true),
        ("/etc/passwd", true),
        ("/var/logs/e", true),
        ("/var/file", true),
    ] {
        assert_eq!(there(path), expected, "{path}");
    }
}

/// A machine that ran, with syslog, dhcpcd, wtmpdb and the installer's logs, leaves nothing that lint finds.
#[test]
fn hygiene_cleans_a_base_that_was_in_use() {
    let paths = [
        "/etc/machine-id",
        "/etc/ssh/ssh_host_ed25519_key",
        "/root/.bash_history",
        "/root/.python_history",
        "/root/.ssh/authorized_keys",
        "/root/.ssh/authorized_keys2",
        "/tmp/a/b",
        "/var/cache/apt/archives/a_1_all.deb",
        "/var/lib/apt/lists/deb_InRelease",
        "/var/lib/cloud/instances/i/boot-finished",
        "/var/lib/dbus/machine-id",
        "/var/lib/dhcpcd/duid",
        "/var/lib/dhcpcd/eth0.lease",
        "/var/lib/lastlog/lastlog2.db",
        "/var/lib/NetworkManager/secret_key",
        "/var/lib/systemd/random-seed",
        "/var/lib/wtmpdb/wtmp.db",
        "/var/log/audit/audit.log",
        "/var/log/cloud-init.log",
        "/var/log/dpkg.log.1",
        "/var/log/exim4/mainlog",
        "/var/log/installer/cdebconf/questions.dat",
        "/var/log/journal/0123/system.journal",
        "/var/log/syslog",
        "/var/log/syslog.2.gz",
        "/var/log/wtmp.db",
    ];
    let found = |tree: &Tree| -> Vec<String> {
        let shadow = |finding: &vmbake_query::lint::Finding| matches!(finding.rule, "image-name" | "passwords");
        let bad = lint(tree).into_iter().filter(|finding| finding.status != LintStatus::Ok && !shadow(finding));
        bad.map(|finding| finding.path).collect()
    };
    let tree = used(&paths);
    assert!(found(&tree).len() >= paths.len() - 2, "{:?}", found(&tree));
    let hygiene: serde_json::Value = serde_json::from_str(HYGIENE).unwrap();
    let keys = format!(r#", "remove": {}, "empty": {}"#, hygiene["remove"], hygiene["empty"]);
    let baked = bake_onto(tree, &[], &keys).unwrap();
    assert_eq!(found(&baked), Vec::<String>::new());
    assert!(baked.lookup(b"/var/log/exim4").is_some(), "a service needs its directory");
}

/// A pattern through a link removes what is behind it.
#[test]
fn patterns_lead_through_links() {
    for pattern in ["/srv/link/*.a", "/srv/link/**", "/srv/x/../link/*.a", "/srv/chain/*.a"] {
        let mut tree = base_with(&[("/data/log/x.a", "x"), ("/srv/x/y", "y")]);
        let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
        for (path, target) in [("/srv/link", "../data/log"), ("/srv/chain", "/srv/link"), ("/srv/lost", "none")] {
            let kind = Kind::Symlink(target.as_bytes().to_vec());
            tree.place(path.as_bytes(), Inode { meta: Metadata::default(), kind, origin }).unwrap();
        }
        let keys = format!(r#", "remove": ["{}", "/srv/lost/*"]"#, pattern.replace("/x/..", ""));
        let baked = bake_onto(tree, &[], &keys).unwrap();
        assert!(baked.lookup(b"/data/log/x.a").is_none(), "{pattern}");
        assert!(baked.lookup(b"/data/log").is_some() && baked.lookup(b"/srv/link").is_some(), "{pattern}");
    }
}

/// A link does not lead around the rule that the system's directories stay.
#[test]
fn links_to_directories_of_the_system_are_not_emptied() {
    for (to, entry, directory) in [
        ("/etc", "/srv/link/*", "/etc"),
        ("/", "/srv/link/**", "/"),
        ("/", "/srv/link/etc", "/etc"),
        ("../usr", "/srv/link/li*", "/usr/lib"),
    ] {
        let mut tree = base_with(&[("/srv/x", "x"), ("/usr/lib/x", "x")]);
        let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
        let kind = Kind::Symlink(to.as_bytes().to_vec());
        tree.place(b"/srv/link", Inode { meta: Metadata::default(), kind, origin }).unwrap();
        let error = bake_onto(tree, &[], &format!(r#", "remove": ["{entry}"]"#)).unwrap_err();
        let expected =
            format!("layer k: {entry} in `remove` leads to {directory}, a system directory that the image needs");
        assert_eq!(error, expected);
    }
}

#[test]
fn removals_of_what_is_not_there_are_told() {
    let keys = r#", "remove": ["/opt/a", "/opt/b/c", "/opt/none", "/opt/none*", "/opt/none/**"]"#;
    let base = base_with(&[("/opt/a", "a"), ("/opt/b/c", "c")]);
    let expected = "layer k: `remove` lists /opt/none, which is not in the image: correct or remove the entry; \
                    a pattern such as /opt/none* may match nothing";
    assert_eq!(warnings(base, &[], keys), [expected]);
}

const CLEANED: &str = r#", "remove": ["/var/log/**", "/root/.ssh/authorized_keys*", "/var/lib/cloud/*"],
    "empty": ["/etc/machine-id"], "truncate": ["/var/log/wtmp", "/var/log/btmp"]"#;

/// If hygiene would delete a file of a layer, the bake fails, unless the layer keeps it.
#[test]
fn what_hygiene_would_delete_of_a_layer_is_named() {
    let unpacked = |name| Part {
        install: r#"{"type": "tar", "path": "/var/lib/cloud"}"#.to_owned(),
        ..archive(name, tar(&[file("seed/nocloud/user-data", "u")]))
    };
    let cases: [(&str, &str, Vec<Part>); 6] = [
        ("/var/log/acme/a.log", r#""files": {"/var/log/acme/a.log": {"content": "a"}}"#, vec![]),
        ("/root/.ssh/authorized_keys", r#""files": {"/root/.ssh/authorized_keys": {"content": "k"}}"#, vec![]),
        ("/var/lib/cloud/seed", r#""directories": {"/var/lib/cloud/seed": {"mode": "0755"}}"#, vec![]),
        ("/var/lib/cloud/x", r#""symlinks": {"/var/lib/cloud/x": "/etc/x"}"#, vec![]),
        ("/var/lib/cloud/tool", r#""motd": "m""#, vec![program("tool", "/var/lib/cloud/tool")]),
        ("/var/lib/cloud/seed", r#""motd": "m""#, vec![unpacked("seed")]),
    ];
    for (path, keys, parts) in cases {
        let layers = |keys: &str| bake_layers(&[("hygiene", CLEANED, &[]), ("k", &format!(", {keys}"), &parts)]);
        let error = layers(keys).unwrap_err();
        assert_eq!(error, format!("{path}: layer k contains it, and layer hygiene removes it"));
        // A file keeps the directories above it, a directory nothing that is below it.
        let kept =
            if parts.iter().any(|part| part.name == "seed") { "/var/lib/cloud/seed/nocloud/user-data" } else { path };
        let tree = layers(&format!(r#"{keys}, "keep": ["{kept}"]"#)).unwrap();
        assert!(tree.lookup(kept.as_bytes()).is_some(), "{kept}");
    }
    let keys = r#", "files": {"/etc/machine-id": {"content": "1"}}"#;
    let error = bake_layers(&[("hygiene", CLEANED, &[]), ("k", keys, &[])]).unwrap_err();
    assert_eq!(error, "/etc/machine-id: layer k contains it, and layer hygiene empties it");
    let keys = r#", "symlinks": {"/etc/machine-id": "/etc/id"}"#;
    let error = bake_layers(&[("hygiene", CLEANED, &[]), ("k", keys, &[])]).unwrap_err();
    assert_eq!(error, "/etc/machine-id: layer k contains it, and layer hygiene replaces it");
}

#[test]
fn login_records_stay_without_content() {
    let mut tree = base_with(&[("/var/log/wtmp", "w"), ("/var/log/syslog", "s"), ("/var/log/deep/wtmp", "w")]);
    let id = tree.lookup(b"/var/log/wtmp").unwrap();
    let meta = tree.meta_mut(id);
    (meta.mode, meta.gid) = (0o664, 43);
    let baked = bake_onto(tree, &[], CLEANED).unwrap();
    let inode = baked.inode(baked.lookup(b"/var/log/wtmp").unwrap());
    assert!(matches!(&inode.kind, Kind::File(map) if map.is_empty()));
    assert_eq!((inode.meta.mode, inode.meta.uid, inode.meta.gid), (0o664, 0, 43));
    for gone in ["/var/log/btmp", "/var/log/syslog", "/var/log/deep/wtmp"] {
        assert!(baked.lookup(gone.as_bytes()).is_none(), "{gone}");
    }
}

#[test]
fn archives_bring_no_files_where_machines_mount_others() {
    for (member, reason) in [
        ("run/x", "machines mount another file system at /run"),
        ("tmp/x/y", "machines mount another file system at /tmp"),
        ("var/run/x", "machines mount another file system at /var/run"),
        ("var/tmp/x", "the layer `hygiene` empties /var/tmp, and machines delete old files there"),
    ] {
        let part =
            Part { install: r#"{"type": "tar", "path": "/"}"#.to_owned(), ..archive("a", tar(&[file(member, "x")])) };
        let error = bake_layers(&[("k", "", &[part])]).unwrap_err();
        assert_eq!(error, format!("/{member}: layer k contains it, but {reason}"));
    }
}

/// A link of the base or of another layer does not lead layers to where nothing of an image stays.
#[test]
fn layers_place_nothing_through_links_where_machines_mount_others() {
    let unpacked = |name| Part {
        install: r#"{"type": "tar", "path": "/srv/own"}"#.to_owned(),
        ..archive(name, tar(&[file("x", "x")]))
    };
    let links = r#", "symlinks": {"/srv/link": "../tmp", "/srv/deep": "/run/a"}, "directories": {"/srv/b": {}}"#;
    let cases: [(&str, &str, Vec<Part>); 6] = [
        (r#""files": {"/srv/link/x": {"content": "x"}}"#, "/tmp/x", vec![]),
        (r#""directories": {"/srv/link/d": {"mode": "0755"}}"#, "/tmp/d", vec![]),
        (r#""directories": {"/srv/link/d": {}}"#, "/tmp/d", vec![]),
        (r#""symlinks": {"/srv/link/l": "x"}"#, "/tmp/l", vec![]),
        (r#""motd": "m""#, "/tmp/tool", vec![program("tool", "/srv/own/tool")]),
        (r#""motd": "m""#, "/tmp/x", vec![unpacked("a")]),
    ];
    for (keys, path, parts) in cases {
        let mut tree = base();
        let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
        let meta = Metadata::root(0o755, Timestamp::default());
        for dir in ["/tmp", "/run", "/srv"] {
            tree.make_dirs(dir.as_bytes(), &meta, origin).unwrap();
        }
        let own = Inode { meta, kind: Kind::Symlink(b"/tmp".to_vec()), origin };
        tree.place(b"/srv/own", own).unwrap();
        let keys = format!(", {keys}");
        let error = bake_layers_onto(tree, &[("links", links, &[]), ("k", &keys, &parts)]).unwrap_err();
        assert_eq!(
            error,
            format!("{path}: layer k contains it, but machines mount another file system at /tmp"),
            "{keys}"
        );
    }
}
