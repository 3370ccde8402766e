//! systemd-sysusers.

use super::accounts::tables;
use super::parts::{run, system};
use crate::bake_inputs::parts::text;

#[test]
fn sysusers_makes_what_the_real_one_makes() {
    let files = [
        ("/usr/lib/sysusers.d/own.conf", include_str!("sysusers/sysusers.conf")),
        ("/usr/lib/sysusers.d/range.conf", "r - 300-310\nu low -\n"),
        ("/usr/lib/own.owner", ""),
    ];
    let mut base = system(&files);
    let id = base.lookup(b"/usr/lib/own.owner").unwrap();
    (base.meta_mut(id).uid, base.meta_mut(id).gid) = (460, 470);
    // The last one has nothing to do, so that it makes no backup.
    let names = ["own", "range", "own"].map(|name| format!("systemd-sysusers {name}.conf\n"));
    let tree = run(base, &format!("set -e\n{}", names.concat())).unwrap();
    let expected = include_str!("sysusers/sysusers.tables");
    assert_eq!(tables(&tree, expected), expected);
}

#[test]
fn sysusers_reads_other_inputs_too() {
    let inputs = ["systemd-sysusers --inline 'u il - \"a b\" /x'", "echo 'u il - \"a b\" /x' | systemd-sysusers -"];
    for line in inputs {
        let tree = run(system(&[]), line).unwrap();
        assert!(text(&tree, "/etc/passwd").contains("\nil:x:998:998:a b:/x:/usr/sbin/nologin\n"), "{line}");
    }
    let files = [
        ("/etc/sysusers.d/b.conf", "u b -\n"),
        ("/usr/lib/sysusers.d/b.conf", "u no -\n"),
        ("/usr/lib/sysusers.d/a.conf", "u a -\n"),
    ];
    let passwd = text(&run(system(&files), "systemd-sysusers").unwrap(), "/etc/passwd");
    assert!(passwd.ends_with("a:x:998:998::/:/usr/sbin/nologin\nb:x:997:997::/:/usr/sbin/nologin\n"), "{passwd}");
}

#[test]
fn sysusers_refuses_what_it_does_not_understand() {
    for (line, expected) in [
        ("u bad name", "line \"u bad name\" is invalid"),
        ("u a - \"b", "is invalid"),
        ("u x%b -", "is invalid"),
        ("u a - \"b:c\"", "is invalid"),
        ("u 1:2 -", "is invalid"),
        ("g a x", "is invalid"),
        ("m a", "is invalid"),
        ("r - 5-x", "is invalid"),
        ("z a", "is invalid"),
        ("u a - - - - more", "is invalid"),
        ("u a -:nix", "the group nix of the user a does not exist"),
        ("r - 988\nu a -", "no free id for the group a"),
    ] {
        let base = system(&[("/usr/lib/sysusers.d/own.conf", line)]);
        let error = run(base, "systemd-sysusers own.conf").map(|_| ()).expect_err(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let error = run(system(&[]), "systemd-sysusers own.conf").map(|_| ()).unwrap_err();
    assert!(
        error.ends_with("/usr/lib/sysusers.d/own.conf: is used by a script, but not contained in any package"),
        "{error}"
    );
    assert!(run(system(&[]), "systemd-sysusers --replace=/x").is_err());
}
