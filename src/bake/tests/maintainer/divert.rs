//! dpkg-divert(1).

use super::helpers::{postinst, refusal, said};
use crate::bake_inputs::parts::{bake_onto, base, base_with, control, deb, file, package, text};

const DIVERSIONS: &str = "/var/lib/dpkg/diversions";

#[test]
fn diversions_are_told_and_kept_as_dpkg_does() {
    let files = [("/etc/a", "a\n"), ("/etc/b", "b\n"), ("/etc/c", "1\n"), ("/etc/c.distrib", "2\n"), ("/etc/d/x", "")];
    let pairs = [
        ("dpkg-divert --local --no-rename --add /etc/a", "Adding 'local diversion of /etc/a to /etc/a.distrib'\n"),
        ("dpkg-divert --package p --add --rename --divert /etc/a.p /etc/a", "=2\n"),
        (
            "dpkg-divert --package p --no-rename --divert /etc/b.p /etc/b",
            "Adding 'diversion of /etc/b to /etc/b.p by p'\n",
        ),
        (
            "dpkg-divert --package p --no-rename --divert /etc/b.p /etc/b",
            "Leaving 'diversion of /etc/b to /etc/b.p by p'\n",
        ),
        ("dpkg-divert --package q --no-rename --divert /etc/b.p /etc/b", "=2\n"),
        ("dpkg-divert --package p --no-rename --divert /etc/b.q /etc/b", "=2\n"),
        ("dpkg-divert --package p --no-rename --add /etc/b.p", "=2\n"),
        ("dpkg-divert --rename --add /etc/d", "=2\n"),
        ("dpkg-divert --rename --add etc/x", "=2\n"),
        ("dpkg-divert --rename --add /etc/x /etc/y", "=2\n"),
        ("dpkg-divert --rename --add /etc/none", "Adding 'diversion of /etc/none to /etc/none.distrib by own'\n"),
        (
            "dpkg-divert --list '/etc/[b-z]*'",
            "diversion of /etc/none to /etc/none.distrib by own\ndiversion of /etc/b to /etc/b.p by p\n",
        ),
        ("dpkg-divert --list nope", ""),
        ("dpkg-divert --truename /etc/b", "/etc/b.p\n"),
        ("dpkg-divert --truename /etc/zz", "/etc/zz\n"),
        ("dpkg-divert --listpackage /etc/b", "p\n"),
        ("dpkg-divert --listpackage /etc/a", "LOCAL\n"),
        ("dpkg-divert --listpackage /etc/zz", ""),
        ("dpkg-divert --test --rename /etc/group", "Adding 'diversion of /etc/group to /etc/group.distrib by own'\n"),
        ("dpkg-divert --remove --no-rename /etc/zz", "No diversion 'diversion of /etc/zz by own', none removed.\n"),
        (
            "dpkg-divert --local --remove --no-rename /etc/zz",
            "No diversion 'local diversion of /etc/zz', none removed.\n",
        ),
        ("dpkg-divert --package q --remove --no-rename /etc/b", "=2\n"),
        ("dpkg-divert --package p --remove --no-rename --divert /etc/wrong /etc/b", "=2\n"),
        ("dpkg-divert --package p --remove --no-rename /etc/b", "Removing 'diversion of /etc/b to /etc/b.p by p'\n"),
        ("dpkg-divert --rename --add /etc/c", "Adding 'diversion of /etc/c to /etc/c.distrib by own'\n=2\n"),
        ("dpkg-divert --quiet --rename --add /etc/b", ""),
    ];
    let (found, tree) = said(base_with(&files), &pairs.map(|(command, _)| command));
    for ((command, expected), found) in pairs.iter().zip(&found) {
        assert_eq!(found, expected, "{command}");
    }
    // In the order of dpkg's table.
    let expected = "/etc/none\n/etc/none.distrib\nown\n/etc/b\n/etc/b.distrib\nown\n/etc/a\n/etc/a.distrib\n:\n";
    assert_eq!(text(&tree, DIVERSIONS), expected);
    assert_eq!(text(&tree, "/var/lib/dpkg/diversions-old"), expected.replace("/etc/b\n/etc/b.distrib\nown\n", ""));
    assert!(tree.lookup(b"/etc/b").is_none());
    assert_eq!((text(&tree, "/etc/b.distrib"), text(&tree, "/etc/a")), ("b\n".to_owned(), "a\n".to_owned()));
    let clash = "dpkg-divert: error: 'diversion of /etc/a to /etc/a.p by p' clashes with \
        'local diversion of /etc/a to /etc/a.distrib'\n";
    let errors = text(&tree, "/errors");
    assert!(errors.starts_with(clash), "{errors}");
    assert!(
        errors.contains("rename involves overwriting '/etc/c.distrib' with\n  different file '/etc/c', not allowed\n")
    );
    assert!(errors.contains("mismatch on divert-to\n  when removing 'diversion of /etc/b to /etc/wrong by p'\n"));
}

#[test]
fn a_diversion_is_taken_back_with_its_file() {
    let lines = "dpkg-divert --rename --divert /etc/a.moved --add /etc/a\ntest ! -e /etc/a\ncat /etc/a.moved\n\
        dpkg-divert --rename --divert /etc/a.moved --remove /etc/a\ntest ! -e /etc/a.moved";
    let tree = postinst(base_with(&[("/etc/a", "a\n")]), lines).unwrap();
    assert_eq!((text(&tree, "/etc/a"), text(&tree, DIVERSIONS)), ("a\n".to_owned(), String::new()));
}

#[test]
fn packages_that_come_later_are_diverted() {
    let preinst = "#!/bin/sh\nset -e\ndpkg-divert --package own --add --rename --divert /etc/tool.real /etc/tool\n";
    let own = package("own", deb(&control("own", ""), &[("preinst", preinst)], &[file("./etc/tool", "own\n")]));
    let other = package("other", deb(&control("other", ""), &[], &[file("./etc/tool", "other\n")]));
    let tree = bake_onto(base(), &[other, own], "").unwrap();
    assert_eq!((text(&tree, "/etc/tool"), text(&tree, "/etc/tool.real")), ("own\n".to_owned(), "other\n".to_owned()));
    // The package's own file stays where it is.
    let again = "dpkg-divert --package own --add --rename --divert /etc/tool.again /etc/tool\n";
    let data = [file("./etc/tool", "own\n")];
    let postinst = format!("#!/bin/sh\nset -e\n{again}");
    let tree = bake_onto(base(), &[package("own", deb(&control("own", ""), &[("postinst", &postinst)], &data))], "");
    assert_eq!(text(&tree.unwrap(), "/etc/tool"), "own\n");
}

#[test]
fn what_is_not_known_is_refused() {
    for command in ["dpkg-divert --root=/x --add /etc/a", "dpkg-divert --add --remove /etc/a"] {
        assert!(refusal(base(), command).contains("is not supported"), "{command}");
    }
}
