//! Packages that the base has already, and accounts that it has.

use vmbake_disk::tree::Tree;

use super::parts::{BASE_STATUS, bake_layers, bake_onto, base_with, control, deb, file, package, text};

const STATUS: &str = "/var/lib/dpkg/status";

fn status(state: &str, arch: &str, version: &str) -> String {
    format!(
        "{BASE_STATUS}Package: p\nStatus: {state}\nArchitecture: {arch}\nMulti-Arch: same\nVersion: {version}\n\
         Description: the base's\n\n"
    )
}

/// Bakes the package `p` in version 1.0-1, with an unsupported postinst, on a base that has it in some state.
fn run(status: &str, keys: &str) -> Result<Tree, String> {
    let base = base_with(&[(STATUS, status), ("/usr/bin/p", "the base's")]);
    let data = [file("./usr/bin/p", "the manifest's"), file("./usr/bin/more", "")];
    let info = [("postinst", "#!/bin/sh\nunknown\n")];
    let part = package("art", deb(&control("p", "Multi-Arch: same\n"), &info, &data));
    bake_onto(base, &[part], keys)
}

#[test]
fn what_the_base_has_in_the_pinned_version_stays() {
    for state in ["install ok installed", "hold ok installed"] {
        let status = status(state, "amd64", "1.0-1");
        for keys in ["", r#", "upgrade": ["art"]"#] {
            let tree = run(&status, keys).unwrap();
            assert_eq!((text(&tree, STATUS), text(&tree, "/usr/bin/p").as_str()), (status.clone(), "the base's"));
            for path in ["/usr/bin/more", "/var/lib/dpkg/info/p:amd64.list", "/var/lib/dpkg/status-old"] {
                assert!(tree.lookup(path.as_bytes()).is_none(), "{path}");
            }
        }
    }
    // Equal to dpkg, though written otherwise.
    run(&status("install ok installed", "amd64", "0:1.0-1"), "").unwrap();
    // The other architecture is there, too.
    let both = status("install ok installed", "amd64", "1.0-1")
        + "Package: p\nStatus: install ok installed\nArchitecture: i386\nMulti-Arch: same\nVersion: 1.0-1\n\n";
    run(&both, "").unwrap();
}

#[test]
fn rules_about_a_package_that_stays_hold_for_the_base_s_files() {
    let status = status("install ok installed", "amd64", "1.0-1");
    let keys = r#", "modes": {"/usr/bin/p": {"mode": "0700"}}, "remove": ["/etc/taken.conf"]"#;
    let tree = run(&status, keys).unwrap();
    assert_eq!(tree.inode(tree.lookup(b"/usr/bin/p").unwrap()).meta.mode, 0o700);
    assert!(tree.lookup(b"/etc/taken.conf").is_none());
    let error = run(&status, r#", "setuid": ["/usr/bin/p"]"#).unwrap_err();
    assert_eq!(
        error,
        "/usr/bin/p: layer k lists it in `setuid`, but it has neither a setuid or setgid bit nor capabilities"
    );
    let error = run(&status, r#", "modes": {"/usr/bin/more": {"mode": "0700"}}"#).unwrap_err();
    assert!(error.contains("/usr/bin/more: no such file"), "{error}");
}

#[test]
fn what_the_base_has_otherwise_is_refused() {
    let upgrade = r#", "upgrade": ["art"]"#;
    for (state, arch, version, keys, expected) in [
        ("install ok installed", "amd64", "0.9", "", "p: the base has version 0.9, but the manifest pins 1.0-1"),
        ("install ok installed", "amd64", "2", "", "p: the base has version 2, which is newer than the pinned 1.0-1"),
        (
            "install ok installed",
            "amd64",
            "1:0",
            upgrade,
            "p: the base has version 1:0, which is newer than the pinned",
        ),
        (
            "install ok installed",
            "i386",
            "1.0-1",
            "",
            "p: the base has version 1.0-1 for i386, but the manifest pins the package for",
        ),
        (
            "install ok installed",
            "all",
            "0.9",
            upgrade,
            "p: the base has version 0.9 for all, but the manifest pins the package for",
        ),
        ("hold ok installed", "amd64", "0.9", upgrade, "p: the base has version 0.9 on hold"),
        (
            "install ok unpacked",
            "amd64",
            "1.0-1",
            upgrade,
            "/var/lib/dpkg/status: has p in the state unpacked: complete its installation or",
        ),
        (
            "install ok half-configured",
            "amd64",
            "1.0-1",
            "",
            "/var/lib/dpkg/status: has p in the state half-configured",
        ),
        (
            "install ok triggers-pending",
            "amd64",
            "1.0-1",
            "",
            "/var/lib/dpkg/status: has p in the state triggers-pending",
        ),
        (
            "deinstall ok installed",
            "amd64",
            "1.0-1",
            "",
            "/var/lib/dpkg/status: has p in the state installed, to be removed",
        ),
    ] {
        let error = run(&status(state, arch, version), keys).expect_err(state);
        assert!(error.starts_with(expected), "{state} {arch} {version}: {error}");
    }
    let both = status("install ok installed", "amd64", "0.9")
        + "Package: p\nStatus: install ok installed\nArchitecture: i386\nMulti-Arch: same\nVersion: 0.9\n\n";
    let error = run(&both, upgrade).unwrap_err();
    assert!(
        error.starts_with("p: the base has version 0.9 for i386, but the manifest pins the package for amd64"),
        "{error}"
    );
}

/// As on an image that vmbake baked.
#[test]
fn accounts_that_the_base_has_are_taken_as_they_are() {
    let keys = r#", "groups": {"g": 902}, "users": {"u": {"id": 901, "home": "/srv/u", "groups": ["g"], "optional_groups": ["root"],
        "subordinate": {"start": 100000, "count": 10}}}"#;
    let tree = bake_onto(base_with(&[]), &[], keys).unwrap();
    let files = ["passwd", "group", "shadow", "gshadow", "subuid", "subgid"].map(|name| format!("/etc/{name}"));
    let texts = files.each_ref().map(|path| text(&tree, path));
    let files: Vec<(&str, &str)> = files.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let again = bake_onto(base_with(&files), &[], keys).unwrap();
    assert_eq!(files.iter().map(|(path, _)| text(&again, path)).collect::<Vec<_>>(), texts);
    // A member that is missing is added, and nothing else.
    let group = texts[1].replace("g:x:902:u", "g:x:902:other");
    let tree = bake_onto(base_with(&[files.as_slice(), &[("/etc/group", &group)]].concat()), &[], keys).unwrap();
    assert_eq!(text(&tree, "/etc/group"), group.replace(":other", ":other,u"));

    // Two layers do not share an account.
    for account in [r#", "users": {"u": {"id": 901}}"#, r#", "groups": {"u": 901}"#] {
        let error = bake_layers(&[("a", account, &[]), ("b", account, &[])]).unwrap_err();
        assert_eq!(error, "layer b: group u with id 901 collides with u:x:901:");
    }

    for (file, from, to) in [
        ("/etc/passwd", "u:x:901:901::/srv/u:", "u:x:901:902::/srv/u:"),
        ("/etc/passwd", "u:x:901:901::/srv/u:", "u:x:901:901::/srv/other:"),
        ("/etc/passwd", "/usr/sbin/nologin", "/bin/sh"),
        ("/etc/passwd", "u:x:901:", "u:x:903:"),
        ("/etc/passwd", "u:x:901:", "v:x:901:"),
        ("/etc/group", "g:x:902:", "g:x:903:"),
        ("/etc/subuid", "100000:10", "100000:11"),
    ] {
        let changed = text(&again, file).replace(from, to);
        assert_ne!(changed, text(&again, file));
        let base = base_with(&[files.as_slice(), &[(file, &changed)]].concat());
        let error = bake_onto(base, &[], keys).expect_err(to);
        assert!(error.starts_with("layer k: ") && error.contains("collides with "), "{to}: {error}");
    }
}
