//! Keys of layers for units and accounts, on bases that differ from Debian's.

use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::parts::{Part, bake_onto, base_with, link, text};

fn bake(base: Tree, keys: &str) -> Result<Tree, String> {
    bake_onto(base, &[] as &[Part], keys)
}

/// A base with symbolic links.
pub fn with_links(mut tree: Tree, links: &[(&str, &str)]) -> Tree {
    let origin = tree.add_origin(Origin::default());
    for (path, to) in links {
        let meta = Metadata::root(0o777, Timestamp::default());
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        tree.place(path.as_bytes(), Inode { meta, kind: Kind::Symlink(to.as_bytes().to_vec()), origin }).unwrap();
    }
    tree
}

const UNIT: &str = "/usr/lib/systemd/system/u.service";
const ENABLE: &str = r#", "units": {"enable": ["u.service"]}"#;
const DISABLE: &str = r#", "units": {"disable": ["u.service"]}"#;

/// As `systemctl --root enable` and `disable` do (systemd.unit(5), systemd.syntax(7)).
#[test]
fn units_are_read_as_systemd_reads_them() {
    let unit = "[Install]\n# more \\\nWantedBy=a.target \\\n; not\n  b.target\nUpheldBy=c.service\n[Unit]\nAlias=no.service\n\
        [Install]\nRequiredBy=d.target\n";
    let base = || base_with(&[(UNIT, unit)]);
    let made = ["a.target.wants", "b.target.wants", "c.service.upholds", "d.target.requires"];
    let made = made.map(|dir| format!("/etc/systemd/system/{dir}/u.service"));
    let tree = bake(base(), ENABLE).unwrap();
    made.iter().for_each(|path| assert_eq!(link(&tree, path), UNIT));
    assert!(tree.lookup(b"/etc/systemd/system/no.service").is_none());

    let mine = ["/etc/systemd/system/x.target.wants/u.service", "/etc/systemd/system/own.service"];
    let kept = [("/etc/systemd/system/other.service", "/usr/lib/systemd/system/uu.service")];
    let links: Vec<(&str, &str)> = made.iter().map(String::as_str).chain(mine).map(|path| (path, UNIT)).collect();
    let tree = bake(with_links(base(), &[links.as_slice(), &kept].concat()), DISABLE).unwrap();
    links.iter().for_each(|(path, _)| assert!(tree.lookup(path.as_bytes()).is_none(), "{path}"));
    assert_eq!(link(&tree, kept[0].0), kept[0].1);

    for word in ["../../../usr/bin/sh", "%m-x.service"] {
        let error = bake(base_with(&[(UNIT, &format!("[Install]\nAlias={word}\n"))]), ENABLE).unwrap_err();
        assert!(error.contains("is not a valid name for the unit"), "{error}");
    }
}

#[test]
fn accounts_leave_what_is_there() {
    let (passwd, group) = ("root:x:0:0:root:/root:/bin/bash", "root:x:0:");
    let base = base_with(&[("/etc/passwd", passwd), ("/etc/group", group), ("/srv/home/file", "")]);
    let tree = bake(base, r#", "users": {"u": {"id": 901, "home": "/srv/home"}}"#).unwrap();
    assert_eq!(text(&tree, "/etc/passwd"), format!("{passwd}\nu:x:901:901::/srv/home:/usr/sbin/nologin\n"));
    assert_eq!(text(&tree, "/etc/group"), format!("{group}\nu:x:901:\n"));
    let meta = &tree.inode(tree.lookup(b"/srv/home").unwrap()).meta;
    assert_eq!((meta.mode, meta.uid), (0o755, 0), "a home that is there keeps its owner");
}

#[test]
fn a_link_does_not_become_a_file_that_everybody_may_write() {
    for to in ["/etc/id", "/run/none"] {
        let base = with_links(base_with(&[("/etc/id", "1234")]), &[("/etc/machine-id", to)]);
        let tree = bake(base, r#", "empty": ["/etc/machine-id"]"#).unwrap();
        let inode = tree.inode(tree.lookup(b"/etc/machine-id").unwrap());
        assert!(matches!(inode.kind, Kind::File(_)));
        assert_eq!(inode.meta.mode, 0o644, "{to}");
    }
}
