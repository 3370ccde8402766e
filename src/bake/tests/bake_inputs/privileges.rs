//! Set-uid and set-gid files: only those that the layer lists in `setuid`.

use vmbake_common::digest::Digest;

use super::keys::with_links;
use super::parts::{
    Part, archive, bake_layers, bake_onto, base_with, control, deb, dir, file, member, package, pax, program, tar,
    with_mode,
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
                format!("{root}/x: artifact {kind} contains it with mode 4755, which layer a"),
            ),
            (vec![with_mode(file("usr/bin/x", ""), 0o2755)], "contains it with mode 2755".to_owned()),
            (vec![with_mode(file("usr/bin/x", ""), 0o1644)], "contains it with mode 1644".to_owned()),
            (vec![capability(), file("usr/bin/x", "")], "contains it with file capabilities".to_owned()),
            (
                vec![pax("SCHILY.xattr.system.posix_acl_access", b"\x02\0\0\0"), file("usr/bin/x", "")],
                "sets the extended attribute system.posix_acl_access".to_owned(),
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
        assert!(error.contains(&format!("{root}/y: artifact {kind} contains it with mode 4755")), "{error}");
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
        assert!(error.contains(&format!("{root}/x: layer a lists it in `setuid`, but it has neither")), "{error}");
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

#[test]
fn a_script_gives_no_privileges_that_are_not_listed() {
    let script = "#!/bin/sh\nchmod 4755 /usr/bin/x\n";
    let sha256 = Digest::of(script.as_bytes()).hex();
    let entry = format!(
        r#", "scripts": [{{"package": "p", "script": "postinst", "sha256": "{sha256}",
            "files": {{"/usr/bin/x": {{"mode": "4755"}}}}}}]"#
    );
    let part = || package("deb", deb(&control("p", ""), &[("postinst", script)], &[file("./usr/bin/x", "")]));
    let error = bake_layers(&[("a", &entry, &[part()])]).unwrap_err();
    assert!(error.contains("mode 4755 has set-uid, set-gid or sticky bits, but `setuid` does not list"), "{error}");
    let listed = format!(r#"{entry}, "setuid": ["/usr/bin/x"]"#);
    let tree = bake_layers(&[("a", &listed, &[part()])]).unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/usr/bin/x").unwrap()).meta.mode, 0o4755);
    // The list of another layer than the one that installs the package does not count.
    let error = bake_layers(&[("b", "", &[part()]), ("a", &listed, &[])]).unwrap_err();
    assert!(error.contains("/usr/bin/x: artifact deb contains it with mode 4755, which layer b does not"), "{error}");
}

#[test]
fn a_file_of_the_base_whose_mode_changes_is_the_layers() {
    let keys = r#", "modes": {"/etc/a": {"mode": "0600"}, "/etc/b": {"mode": "0644"}}"#;
    let tree = bake_onto(base_with(&[("/etc/a", ""), ("/etc/b", "")]), &[], keys).unwrap();
    let layer = |path: &[u8]| tree.origin(tree.inode(tree.lookup(path).unwrap()).origin).layer.clone();
    assert_eq!(
        (layer(b"/etc/a").as_str(), layer(b"/etc/b").as_str()),
        ("k", "base"),
        "what is as it was is the base's"
    );
}

#[test]
fn the_links_of_a_unit_stay_among_units() {
    for (key, value) in [("Alias", "../../passwd"), ("WantedBy", "../../../usr/bin/x"), ("RequiredBy", "/etc/x")] {
        let unit = format!("[Install]\n{key}={value}\n");
        let base = base_with(&[("/usr/lib/systemd/system/x.service", &unit)]);
        let error = bake_onto(base, &[], r#", "units": {"enable": ["x.service"]}"#).unwrap_err();
        assert!(error.contains(&format!("x.service:2: {key}={value} is not a valid name for the unit")), "{error}");
    }
}

#[test]
fn a_symbolic_link_has_no_privileges() {
    let base = || with_links(base_with(&[("/usr/bin/real", "")]), &[("/usr/bin/tool", "real")]);
    for keys in [
        r#", "modes": {"/usr/bin/tool": {"mode": "4755"}}, "setuid": ["/usr/bin/tool"]"#,
        r#", "capabilities": {"/usr/bin/tool": "cap_chown=p"}, "setuid": ["/usr/bin/tool"]"#,
    ] {
        let error = bake_onto(base(), &[], keys).unwrap_err();
        assert!(error.contains("`setuid` lists /usr/bin/tool, a symbolic link to /usr/bin/real"), "{error}");
    }
    let tree = bake_onto(base(), &[], r#", "modes": {"/usr/bin/tool": {"mode": "0700"}}"#).unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/usr/bin/real").unwrap()).meta.mode & 0o7777, 0o700);
}
