//! dpkg-statoverride(1).

use super::helpers::{refusal, said};
use crate::bake_inputs::parts::{bake_onto, base, base_with, control, deb, file, package, text};

#[test]
fn owners_and_modes_are_set_and_kept_as_dpkg_does() {
    let files = [
        ("/etc/group", "root:x:0:\nadm:x:4:\nbin:x:2:\n"),
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\n"),
        ("/etc/a", ""),
        ("/etc/b", ""),
        ("/etc/dd/x", ""),
    ];
    let pairs = [
        ("dpkg-statoverride --list", "=1\n"),
        ("dpkg-statoverride --add root adm 0640 /etc/a", ""),
        ("dpkg-statoverride --update --add root adm 640 /etc/b", ""),
        ("dpkg-statoverride --update --add root adm 0640 /etc/b", "=2\n"),
        ("dpkg-statoverride --quiet --update --add root adm 0641 /etc/b", "=2\n"),
        ("dpkg-statoverride --force-all --update --add root adm 0641 /etc/b", ""),
        ("dpkg-statoverride --update --add '#1' '#2' 0750 /etc/dd/", ""),
        ("dpkg-statoverride --update --add root nogr 0641 /etc/c", "=2\n"),
        ("dpkg-statoverride --update --add nouser root 0641 /etc/c", "=2\n"),
        ("dpkg-statoverride --update --add root root 9 /etc/c", "=2\n"),
        ("dpkg-statoverride --add root /etc/c", "=2\n"),
        ("dpkg-statoverride --update --add root root 644 /etc/nope", ""),
        ("dpkg-statoverride --add '#777' '#778' 644 rel", ""),
        (
            "dpkg-statoverride --list",
            "root root 644 /etc/nope\n#777 #778 644 /rel\nroot adm 641 /etc/b\nroot adm 640 /etc/a\ndaemon bin 750 /etc/dd\n",
        ),
        ("dpkg-statoverride --list '*a'", "root adm 640 /etc/a\n"),
        ("dpkg-statoverride --list /etc/none", "=1\n"),
        ("dpkg-statoverride --remove /etc/none", "=2\n"),
        ("dpkg-statoverride --force-statoverride-remove --remove /etc/none", ""),
        ("dpkg-statoverride --remove", "=2\n"),
        ("dpkg-statoverride --update --remove /etc/b", ""),
        ("dpkg-statoverride", "=2\n"),
    ];
    let (found, tree) = said(base_with(&files), &pairs.map(|(command, _)| command));
    for ((command, expected), found) in pairs.iter().zip(&found) {
        assert_eq!(found, expected, "{command}");
    }
    let meta = |path: &str| {
        let meta = &tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta;
        (meta.mode, meta.uid, meta.gid)
    };
    assert_eq!([meta("/etc/a"), meta("/etc/b"), meta("/etc/dd")], [(0o644, 0, 0), (0o641, 0, 4), (0o750, 1, 2)]);
    let rest = "root root 644 /etc/nope\n#777 #778 644 /rel\nroot adm 640 /etc/a\ndaemon bin 750 /etc/dd\n";
    assert_eq!(text(&tree, "/var/lib/dpkg/statoverride"), rest);
    let before = rest.replace("/rel\n", "/rel\nroot adm 641 /etc/b\n");
    assert_eq!(text(&tree, "/var/lib/dpkg/statoverride-old"), before);
    assert!(text(&tree, "/errors").contains("error: an override for '/etc/b' already exists; aborting\n"));
}

#[test]
fn packages_that_come_later_get_them() {
    let script = "#!/bin/sh\ndpkg-statoverride --add root root 0600 /etc/tool\n";
    let own = package("own", deb(&control("own", ""), &[("preinst", script)], &[]));
    let other = package("zother", deb(&control("zother", ""), &[], &[file("./etc/tool", "")]));
    let tree = bake_onto(base(), &[own, other], "").unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/etc/tool").unwrap()).meta.mode, 0o600);
}

#[test]
fn what_is_not_known_is_refused() {
    let error = refusal(base(), "dpkg-statoverride --admindir /x --list || true");
    assert!(error.contains("is not supported"), "{error}");
    // No file gets privileges that no layer lists.
    let error = refusal(base_with(&[("/etc/a", "")]), "dpkg-statoverride --update --add root root 4755 /etc/a");
    assert!(error.contains("/etc/a"), "{error}");
}
