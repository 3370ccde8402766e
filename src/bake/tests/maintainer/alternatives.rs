//! update-alternatives, compared with the real one.

use std::fs;
use std::process::Command;

use crate::bake_inputs::parts::{base_with, text};
use crate::tools::have;

use super::helpers::{postinst, refusal};

const FILES: [&str; 6] = ["/usr/bin/a", "/usr/bin/b", "/usr/bin/c", "/usr/man/a.1", "/usr/man/b.1", "/usr/man/x9.1"];

/// Runs update-alternatives in `$R`, and writes down what it says and what it leaves.
const JUDGE: &str = r#"
mkdir -p $R/etc/alternatives $R/var/lib/dpkg/alternatives $R/var/log
u() {
    s=0
    update-alternatives $ROOT "$@" >$R/out 2>$R/err || s=$?
    { echo "$ $*"; echo "= $s"; cat $R/out; echo 'err:'; cat $R/err; } >>$R/said
    for f in $R/etc/alternatives/* $R/usr/bin/* $R/usr/man/*; do
        if [ -L $f ]; then echo "$f -> $(readlink $f)" >>$R/said; fi
    done
    for f in $R/var/lib/dpkg/alternatives/*; do
        if [ -f $f ]; then cat $f >>$R/said; fi
    done
}
i() { p=$1; shift; u --install /usr/bin/x x /usr/bin/$p "$@"; }
s() { p=$1; shift; i $p "$@" --slave /usr/man/x.1 x.1 /usr/man/$p.1; }
"#;

const CASES: [(&str, &str); 23] = [
    (
        "unknown",
        "for a in remove-all auto display query list; do u --$a nix; done; u --set nix /a; \
         u --remove nix /a\nu --verbose --remove nix /usr/bin/a; u --get-selections",
    ),
    ("remove", "s a 1; i b 5; u --verbose --remove x /usr/bin/zz; u --remove x /usr/bin/b; u --remove x /usr/bin/a"),
    ("remove another", "s a 1; i b 5; u --remove x /usr/bin/a; u --remove-all x; u --remove-all x"),
    (
        "set",
        "s a 1; i b 5; u --set x /usr/bin/a; i c 9; u --display x; u --query x; u --set x /usr/bin/nix; \
         u --auto x; u --auto x",
    ),
    (
        "remove what was set",
        "s a 1; i b 5; u --set x /usr/bin/a; u --remove x /usr/bin/a; u --quiet --set x /usr/bin/b",
    ),
    (
        "loud",
        "u --verbose --install /usr/bin/x x /usr/bin/a 1; u --verbose --set x /usr/bin/a; \
         u --verbose --install /usr/bin/x x /usr/bin/b 2\nu --verbose --auto x",
    ),
    (
        "moved slaves",
        "s a 1; u --install /usr/bin/x x /usr/bin/a 1 --slave /usr/man/y.1 x.1 /usr/man/a.1\n\
         u --install /usr/bin/x x /usr/bin/b 3 --slave /usr/man/x9.1 x.1 /usr/man/b.1; \
         u --remove x /usr/bin/b",
    ),
    (
        "a slave of another choice moves",
        "s a 1; i b 5; u --install /usr/bin/x x /usr/bin/c 1 --slave /usr/man/y.1 x.1 /usr/man/a.1; \
         u --set x /usr/bin/a",
    ),
    ("lost slaves", "s a 1; u --verbose --install /usr/bin/x x /usr/bin/a 1; s c 7; u --display x; u --query x"),
    ("moved link", "i a 1; u --install /usr/bin/y x /usr/bin/b 2; u --install /usr/bin/x x /usr/bin/c 1; u --list x"),
    ("occupied", "echo f >$R/usr/bin/x; i a 1; u --auto x; u --force --auto x; u --install /usr/bin/y x /usr/bin/a 1"),
    (
        "occupied, then moved",
        "echo f >$R/usr/bin/x; i a 1; u --install /usr/bin/y x /usr/bin/a 1; echo f >$R/usr/bin/z; \
         u --install /usr/bin/z x /usr/bin/a 1",
    ),
    (
        "occupied slave",
        "echo f >$R/usr/man/x.1; s a 1; i b 3; u --remove x /usr/bin/b; u --force --set x /usr/bin/a; \
         u --remove-all x",
    ),
    (
        "occupied, then removed",
        "echo f >$R/usr/man/x.1; echo f >$R/usr/bin/x; s a 1; u --quiet --remove-all x; s a 1; u --remove-all x",
    ),
    ("gone", "i a 1; i b 2; rm $R/usr/bin/b; u --display x; u --query x; u --list x; u --get-selections; u --auto x"),
    ("removed manually", "i a 1; i b 2; u --set x /usr/bin/a; rm $R/usr/bin/a; u --display x; i c 1"),
    ("all gone", "i a 1; u --set x /usr/bin/a; rm $R/usr/bin/a; u --query x; u --display x; u --auto x"),
    (
        "changed",
        "i a 1; i b 2; ln -sf /usr/bin/c $R/etc/alternatives/x; u --display x; u --query x; i a 1; \
         u --remove x /usr/bin/a; u --auto x",
    ),
    (
        "dangling",
        "i a 1; ln -sf /usr/bin/nix $R/etc/alternatives/x; u --display x; i b 0; \
         ln -sf /usr/bin/nix $R/etc/alternatives/x; u --remove x /usr/bin/b",
    ),
    (
        "no links",
        "i a 1; rm $R/etc/alternatives/x; u --display x; u --query x; u --get-selections; i b 0; \
         rm $R/usr/bin/x; i b 0\nrm $R/usr/bin/x; u --set x /usr/bin/b; rm $R/etc/alternatives/x; i c 1; \
         u --remove x /usr/bin/c",
    ),
    (
        "others' names",
        "s a 1; u --install /usr/bin/y x.1 /usr/bin/b 1; u --install /usr/bin/x y /usr/bin/b 1; \
         u --install /usr/man/x.1 y /usr/bin/b 1\n\
         y() { u --install /usr/bin/y y /usr/bin/b 1 --slave \"$1\" \"$2\" /usr/bin/b; }\ny /usr/bin/q x; \
         y /usr/bin/q x.1; y /usr/bin/x q; y /usr/man/x.1 q; y /usr/bin/q y; y /usr/bin/y q; \
         y /usr/bin/b q; y q q; y /q /q\n\
         u --install /usr/bin/y y /usr/bin/b 1 --slave /q q /b --slave /q w /b; \
         u --install /usr/bin/y y /usr/bin/b 1 --slave /q q /b --slave /w q /b",
    ),
    (
        "arguments",
        "i b; i b 1x; i b 99999999999; i b ''; i b -3; i c +7; i nix 1; u --install x x /usr/bin/b 1; \
         u --install /usr/bin/x x b 1\nu --install /usr/bin/x x/x /usr/bin/b 1; \
         u --install /usr/bin/x 'x x' /usr/bin/b 1; u --install /usr/bin/b x /usr/bin/b 1; \
         i b 1 --slave /q q; i b 1 --slave /q q b",
    ),
    (
        "usage",
        "i a 1; u; u --slave /a a /b; u --set x; u --remove x; u --auto; u --list; u --foo; u foo; \
         u --auto x extra; u --auto x --list x; u --set x /usr/bin/a /b; u --display ../x; u --set .x /a\n\
         u --skip-auto --auto x",
    ),
];

#[test]
fn groups_change_as_with_update_alternatives() {
    if !have(&["update-alternatives"]) {
        return;
    }
    for (label, lines) in CASES {
        let base = base_with(&FILES.map(|path| (path, "")));
        let tree = postinst(base, &format!("R= ROOT=\n{JUDGE}\n{lines}")).expect(label);

        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        for path in FILES {
            let path = format!("{root}{path}");
            fs::create_dir_all(path.rsplit_once('/').unwrap().0).unwrap();
            fs::write(path, "").unwrap();
        }
        let script = format!("set -e\nR={root} ROOT=\"--root {root}\"\n{JUDGE}\n{lines}");
        let output = Command::new("sh").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(output.status.success(), "{label}: {}", String::from_utf8_lossy(&output.stderr));
        let expected = fs::read_to_string(format!("{root}/said")).unwrap().replace(root, "");
        assert_eq!(text(&tree, "/said"), expected, "{label}");
    }
}

#[test]
fn what_is_not_done_leaves_the_groups() {
    let base = || base_with(&[("/usr/bin/a", ""), ("/var/lib/dpkg/alternatives/bad", "auto\n")]);
    let tree = postinst(
        base(),
        "s=0; update-alternatives --install /none/x x /usr/bin/a 1 2>/error || s=$?\necho $s >>/error\n\
         update-alternatives --get-selections >>/error",
    )
    .unwrap();
    let expected = "update-alternatives: error: error creating symbolic link '/none/x.dpkg-tmp': No such file or directory\n\
         2\n";
    assert_eq!(text(&tree, "/error"), expected);
    let error = refusal(base(), "update-alternatives --auto bad");
    assert_eq!(error, "/var/lib/dpkg/alternatives/bad: is not a valid link group of update-alternatives");
    for args in ["--config bad", "--root / --auto bad", "--auto ''", "--set-selections"] {
        let error = refusal(base(), &format!("update-alternatives {args}"));
        assert!(error.contains("is not supported"), "{args}: {error}");
    }
}
