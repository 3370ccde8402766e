//! What a layer removes from a base that was in use.

use std::sync::Arc;

use vmbake::query::lint::lint;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::parts::{bake_onto, base};

const HYGIENE: &str = include_str!("../../../../layers/hygiene/layer.json");

/// The base with more files, in directories of their own.
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
        let shadow = |finding: &vmbake::query::lint::Finding| matches!(finding.rule, "image-name" | "passwords");
        let bad = lint(tree).into_iter().filter(|finding| !finding.ok && !shadow(finding));
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
