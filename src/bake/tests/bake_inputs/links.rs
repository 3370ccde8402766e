//! Links as ways out: nothing is written through a symbolic link that a layer or an artifact brought before.

use vmbake_disk::tree::Kind;

use super::parts::{Part, archive, bake_layers, control, deb, file, link, member, package, program, tar, text};

const NONE: &[Part] = &[];

/// A package with a symbolic link.
fn linking(path: &str, target: &str) -> Part {
    package("deb", deb(&control("p", ""), &[], &[member(b'2', path.as_bytes(), target.as_bytes(), b"")]))
}

/// An archive that goes to a directory.
fn archive_at(name: &'static str, path: &str, bytes: Vec<u8>) -> Part {
    Part { install: format!(r#"{{"type": "tar", "path": "{path}"}}"#), ..archive(name, bytes) }
}

#[test]
fn links_of_others_lead_nowhere() {
    let passwd = || tar(&[file("x/passwd", "evil::0:0::/:/bin/sh\n")]);
    let link = r#", "symlinks": {"/opt/x": "/etc"}"#;
    let package_of_file = |path| package("evil", deb(&control("q", ""), &[], &[file(path, "x")]));
    type Layers<'a> = Vec<(&'a str, &'a str, Vec<Part>)>;
    let cases: Vec<(&str, Layers<'_>, &str)> = vec![
        (
            "archive through a layer's link",
            vec![("a", link, vec![]), ("b", "", vec![archive("evil", passwd())])],
            "opt/x/passwd: artifact evil of layer b would write through the symbolic link /opt/x, which layer a installed",
        ),
        (
            "file through a layer's link",
            vec![("a", link, vec![]), ("b", "", vec![program("evil", "/opt/x/passwd")])],
            "/opt/x/passwd: artifact evil of layer b would write through the symbolic link /opt/x, which layer a installed",
        ),
        (
            "package through a layer's link",
            vec![("a", link, vec![]), ("b", "", vec![package_of_file("./opt/x/passwd")])],
            "opt/x/passwd: artifact evil of layer b would write through the symbolic link /opt/x, which layer a installed",
        ),
        (
            "archive through a package's link",
            vec![("a", "", vec![linking("./opt/x", "../etc"), archive("evil", passwd())])],
            "symbolic link /opt/x, which artifact deb of layer a installed",
        ),
        (
            "package through a link of an earlier layer's package",
            vec![("a", "", vec![linking("./opt/x", "/")]), ("b", "", vec![package_of_file("./opt/x/etc/passwd")])],
            "opt/x/etc/passwd: artifact evil of layer b would write through the symbolic link /opt/x, which artifact deb",
        ),
        (
            "archive through another archive's link",
            vec![("a", "", vec![archive("a", tar(&[member(b'2', b"x", b"../etc", b"")])), archive("evil", passwd())])],
            "opt/x/passwd: artifact evil of layer a would write through the symbolic link /opt/x, which artifact a",
        ),
        (
            "archive through its own link, which stripping put there",
            vec![(
                "a",
                "",
                vec![Part {
                    install: r#"{"type": "tar", "path": "/opt", "strip": 1}"#.to_owned(),
                    ..archive("evil", tar(&[member(b'2', b"1/x", b"../etc", b""), file("2/x/passwd", "x")]))
                }],
            )],
            "opt/x/passwd: artifact evil of layer a would write through the symbolic link /opt/x, which artifact evil",
        ),
        (
            "a layer's directory through a package's link",
            vec![("a", r#", "directories": {"/opt/x/y": {"mode": "0755"}}"#, vec![linking("./opt/x", "../etc")])],
            "/opt/x/y: layer a would write through the symbolic link /opt/x, which artifact deb of layer a installed",
        ),
        (
            "deleting through a package's link",
            vec![("a", r#", "remove": ["/opt/x/*"]"#, vec![linking("./opt/x", "../etc")])],
            "/opt/x/*: layer a would write through the symbolic link /opt/x",
        ),
        (
            "a chain that begins with a link of the base",
            vec![
                ("a", r#", "symlinks": {"/usr/lib/y": "../../etc"}"#, vec![]),
                ("b", "", vec![archive_at("evil", "/lib", tar(&[file("y/passwd", "x")]))]),
            ],
            "lib/y/passwd: artifact evil of layer b would write through the symbolic link /usr/lib/y, which layer a",
        ),
    ];
    for (label, layers, expected) in cases {
        let layers: Vec<(&str, &str, &[Part])> =
            layers.iter().map(|(name, rest, parts)| (*name, *rest, &**parts)).collect();
        let error = bake_layers(&layers).expect_err(label);
        assert!(error.contains(expected), "{label}: {error}");
    }
}

#[test]
fn links_of_the_base_and_among_layers_are_ways() {
    let layers: &[(&str, &str, &[Part])] = &[
        ("a", r#", "symlinks": {"/opt/up": "../../../../etc", "/opt/root": "/etc/../.."}"#, NONE),
        (
            "b",
            r#", "directories": {"/opt/up/d": {"mode": "0700"}, "/opt/root/e": {"mode": "0700"}}, "empty": ["/opt/up/f"]"#,
            &[archive_at("tools", "/lib/tools", tar(&[file("t", "t")]))],
        ),
    ];
    let tree = bake_layers(layers).unwrap();
    for path in ["/etc/d", "/e"] {
        let id = tree.lookup(path.as_bytes()).expect("links that climb above the root stop there");
        assert!(matches!(tree.inode(id).kind, Kind::Directory(_)), "{path}");
    }
    assert_eq!(text(&tree, "/etc/f"), "");
    assert!(tree.lookup(b"/usr/lib/tools/t").is_some());
    assert!(text(&tree, "/etc/passwd").starts_with("root:"));
}

#[test]
fn hard_links_stay_inside_their_archive() {
    let hard = |to: &[u8]| member(b'1', b"passwd", to, b"");
    for (label, target) in [
        ("out of the tree", &b"../../etc/passwd"[..]),
        ("to a file of the base", b"etc/passwd"),
        ("to another artifact's file", b"opt/bin/first"),
    ] {
        let parts = [program("first", "/opt/bin/first"), archive("evil", tar(&[hard(target)]))];
        let error = bake_layers(&[("a", "", &parts)]).expect_err(label);
        assert!(error.contains("not an earlier file") || error.contains("name contains `..`"), "{label}: {error}");
    }
    let package = package("evil", deb(&control("p", ""), &[], &[member(b'1', b"./x", b"./etc/passwd", b"")]));
    let error = bake_layers(&[("a", "", &[package])]).unwrap_err();
    assert!(error.contains("is a hard link to \"etc/passwd\", which is not an earlier file of the archive"), "{error}");
}

#[test]
fn a_hard_link_whose_file_is_left_out_is_a_file() {
    let members = [file("bin/a", "a"), member(b'1', b"bin/b", b"bin/a", b""), member(b'2', b"bin/c", b"a", b"")];
    let install = |name: &str| format!(r#"{{"type": "tar", "path": "/opt", "members": ["{name}"]}}"#);
    let part = |name| Part { install: install(name), ..archive("tools", tar(&members)) };
    let tree = bake_layers(&[("a", "", &[part("bin/b")])]).unwrap();
    assert_eq!(text(&tree, "/opt/bin/b"), "a");
    assert!(tree.lookup(b"/opt/bin/a").is_none());
    let tree = bake_layers(&[("a", "", &[part("bin/c")])]).unwrap();
    assert_eq!(link(&tree, "/opt/bin/c"), "a");
}

#[test]
fn names_of_archives_and_files_differ_in_more_than_case() {
    let packed = |name: &'static str, members: &[Vec<u8>]| archive(name, tar(members));
    let cases = [
        (vec![packed("a", &[file("Tool", ""), file("tool", "")])], "opt/tool of a differs only in case from opt/Tool"),
        (
            vec![packed("a", &[file("bin/x", "")]), packed("b", &[file("Bin/x", "")])],
            "opt/Bin of b differs only in case from opt/bin of a",
        ),
        (
            vec![packed("a", &[file("bin/x", ""), file("Bin/y", "")])],
            "opt/Bin of a differs only in case from opt/bin of a",
        ),
        (vec![packed("a", &[file("x", "")]), program("b", "/opt/X")], "opt/X of b differs only in case"),
    ];
    for (parts, expected) in cases {
        let error = bake_layers(&[("a", "", &parts)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    // Packages of Debian have such names, for example of terminals.
    let package = package("deb", deb(&control("p", ""), &[], &[file("./usr/x", ""), file("./usr/X", "")]));
    bake_layers(&[("a", "", &[package])]).unwrap();
}
