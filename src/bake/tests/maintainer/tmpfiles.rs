//! systemd-tmpfiles.

use vmbake_disk::tree::{Kind, Tree};

use super::parts::{run, run_all, system};
use crate::bake_inputs::parts::{link, text};

const CONF: &str = "/usr/lib/tmpfiles.d/own.conf";

/// All that is below some directories, as `find -printf '%m %U:%G %p %l'` prints it.
fn listed(tree: &Tree, dirs: &[&str]) -> String {
    let mut lines = Vec::new();
    for dir in dirs {
        let Some(top) = tree.lookup(dir.as_bytes()) else { continue };
        for (path, _, inode) in tree.walk_from(top) {
            let to = match &inode.kind {
                Kind::Symlink(to) => format!(" {}", String::from_utf8_lossy(to)),
                _ => String::new(),
            };
            let (mode, uid, gid) = (inode.meta.mode, inode.meta.uid, inode.meta.gid);
            lines.push(format!("{dir}{} {mode:o} {uid}:{gid}{to}\n", String::from_utf8_lossy(&path)));
        }
    }
    lines.sort();
    lines.concat()
}

#[test]
fn files_are_made_as_the_real_one_makes_them() {
    let base = system(&[
        (CONF, include_str!("tmpfiles/tmpfiles.conf")),
        ("/var/lib/own/text", "a\n"),
        ("/var/lib/own/there", "a\n"),
        ("/var/lib/tree/sub/f", "a\n"),
        ("/var/lib/glob/a.c", ""),
        ("/var/lib/glob/b.d", ""),
        ("/var/lib/there/x", ""),
    ]);
    let (tree, statuses, _) = run_all(base, ["systemd-tmpfiles --create own.conf"].into_iter());
    assert_eq!(statuses, "65\tsystemd-tmpfiles --create own.conf\n", "a user is not known");
    let dirs =
        ["own", "own2", "tree", "boot", "e", "nouser", "%b", "glob", "there"].map(|dir| format!("/var/lib/{dir}"));
    let mut dirs: Vec<&str> = dirs.iter().map(String::as_str).collect();
    dirs.extend(["/var/cache/own", "/run"]);
    let expected = "/var/cache/own 755 0:0\n/var/cache/own/deep 755 0:0\n/var/cache/own/deep/dir 2755 0:100\n\
        /var/lib/%b 755 0:0\n/var/lib/glob 755 0:0\n/var/lib/glob/a.c 600 0:0\n/var/lib/glob/b.d 644 0:0\n\
        /var/lib/own 750 5:4\n/var/lib/own/copy 700 0:0\n/var/lib/own/copy/.profile 644 0:0\n\
        /var/lib/own/f 600 0:0\n/var/lib/own/l 777 0:0 ../x\n/var/lib/own/text 600 0:0\n\
        /var/lib/own/there 777 0:0 /usr\n/var/lib/own2 755 0:0\n/var/lib/there 700 5:0\n/var/lib/there/x 644 0:0\n\
        /var/lib/tree 750 5:0\n/var/lib/tree/sub 750 5:0\n/var/lib/tree/sub/f 750 5:0\n";
    assert_eq!(listed(&tree, &dirs), expected);
    assert_eq!(text(&tree, "/var/lib/own/f"), "again world\n");
    assert_eq!(text(&tree, "/var/lib/own/text"), "new");
}

#[test]
fn what_is_there_stays() {
    let lines = "L /etc/l - - - - b\nL+ /etc/m - - - - b\nf /etc/f - - - - b\nd /etc/dir ~0755\nd /etc/other :0700\n\
        C /etc/copy - - - - /etc/skel\nd /etc/f2\nd /srv/%H\nf /srv/sub/x\n";
    let files = [
        (CONF, lines),
        ("/etc/l", "a"),
        ("/etc/m", "a"),
        ("/etc/f", "a"),
        ("/etc/dir/x", "a"),
        ("/etc/other/x", "a"),
        ("/etc/copy/x", "a"),
        ("/etc/f2", "a"),
    ];
    let (tree, statuses, _) = run_all(
        system(&files),
        ["systemd-tmpfiles --create --prefix=/etc own.conf", "systemd-tmpfiles --create"].into_iter(),
    );
    assert!(statuses.starts_with("73\t"), "{statuses}: a file stands where a directory goes");
    assert_eq!((text(&tree, "/etc/l"), text(&tree, "/etc/f")), ("a".to_owned(), "a".to_owned()));
    assert_eq!(link(&tree, "/etc/m"), "b");
    assert_eq!(listed(&tree, &["/etc/dir", "/etc/other", "/etc/copy"]).matches(" 755 ").count(), 3);
    assert_eq!(listed(&tree, &["/srv"]), "/srv 755 0:0\n/srv/sub 755 0:0\n/srv/sub/x 644 0:0\n");
}

#[test]
fn what_is_not_known_or_not_allowed_stops_the_bake() {
    for (line, expected) in [
        ("k /x", "line \"k /x\" is invalid"),
        ("d", "is invalid"),
        ("d x", "is invalid"),
        ("d~ /x", "is invalid"),
        ("d /x 9", "is invalid"),
        ("d /x \"a", "is invalid"),
        ("f /usr/x 4755", "mode 4755"),
        ("z /usr/bin/sh 4755", "mode 4755"),
    ] {
        let error = run(system(&[(CONF, line)]), "systemd-tmpfiles --create own.conf").map(|_| ()).expect_err(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    for line in
        ["systemd-tmpfiles own.conf", "systemd-tmpfiles --remove own.conf", "systemd-tmpfiles --create nix.conf"]
    {
        assert!(run(system(&[(CONF, "")]), line).is_err(), "{line}");
    }
}
