//! Files that run as somebody else: only those that the layer lists in `setuid`.

use super::parts::{
    Part, archive, bake_layers, control, deb, dir, file, member, package, pax, program, tar, with_mode,
};

fn of(name: &str, members: &[Vec<u8>]) -> Part {
    match name {
        "deb" => package("deb", deb(&control("p", ""), &[], members)),
        _ => archive("tar", tar(members)),
    }
}

#[test]
fn surprises_are_refused() {
    let capability = || pax("SCHILY.xattr.security.capability", b"\x01\0\0\x02\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let link = || member(b'1', b"usr/bin/y", b"usr/bin/x", b"");
    for kind in ["deb", "tar"] {
        let root = if kind == "tar" { "/opt/usr/bin" } else { "/usr/bin" };
        let cases: Vec<(Vec<Vec<u8>>, String)> = vec![
            (
                vec![with_mode(file("usr/bin/x", ""), 0o4755)],
                format!("{root}/x: artifact {kind} brings it with mode 4755, which layer a"),
            ),
            (vec![with_mode(file("usr/bin/x", ""), 0o2755)], "brings it with mode 2755".to_owned()),
            (vec![with_mode(file("usr/bin/x", ""), 0o1644)], "brings it with mode 1644".to_owned()),
            (vec![capability(), file("usr/bin/x", "")], "brings it with file capabilities".to_owned()),
            (
                vec![pax("SCHILY.xattr.system.posix_acl_access", b"\x02\0\0\0"), file("usr/bin/x", "")],
                "brings it with the extended attribute system.posix_acl_access".to_owned(),
            ),
        ];
        for (members, expected) in cases {
            let error = bake_layers(&[("a", "", &[of(kind, &members)])]).expect_err(&expected);
            assert!(error.contains(&expected), "{kind}: {error}");
        }
        // What is listed is taken as it is; another name of it is another entry of the list.
        let listed = |paths: &str| format!(r#", "setuid": [{paths}]"#);
        let (x, y) = (format!("\"{root}/x\""), format!("\"{root}/y\""));
        let parts = [of(kind, &[with_mode(file("usr/bin/x", ""), 0o4755), link()])];
        let error = bake_layers(&[("a", &listed(&x), &parts)]).unwrap_err();
        assert!(error.contains(&format!("{root}/y: artifact {kind} brings it with mode 4755")), "{error}");
        let tree = bake_layers(&[("a", &listed(&format!("{x}, {y}")), &parts)]).unwrap();
        let inode = tree.inode(tree.lookup(format!("{root}/x").as_bytes()).unwrap());
        assert_eq!(inode.meta.mode, 0o4755);
        let parts = [of(kind, &[capability(), file("usr/bin/x", "")])];
        let tree = bake_layers(&[("a", &listed(&x), &parts)]).unwrap();
        let inode = tree.inode(tree.lookup(format!("{root}/x").as_bytes()).unwrap());
        assert!(inode.meta.xattrs.contains_key(&b"security.capability"[..]));
        // A list of another layer does not count, nor may a list name what is none.
        let error = bake_layers(&[("b", "", &parts), ("a", &listed(&x), &[])]).unwrap_err();
        assert!(error.contains("which layer b does not list"), "{error}");
        let error = bake_layers(&[("a", &listed(&x), &[of(kind, &[file("usr/bin/x", "")])])]).unwrap_err();
        assert!(error.contains(&format!("{root}/x: layer a lists it in `setuid`, but it has no such mode")), "{error}");
    }
}

#[test]
fn what_is_no_surprise_is_taken() {
    let members = [with_mode(dir("./var/shared/"), 0o2775), pax("SCHILY.xattr.user.note", b"n"), file("./usr/x", "")];
    let tree = bake_layers(&[("a", "", &[of("deb", &members)])]).unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/var/shared").unwrap()).meta.mode, 0o2775, "a directory runs nothing");
    let mut part = program("tool", "/usr/bin/tool");
    part.install = part.install.replace("0755", "4755");
    let tree = bake_layers(&[("a", r#", "setuid": ["/usr/bin/tool"]"#, &[part])]).unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/usr/bin/tool").unwrap()).meta.mode, 0o4755);
}
