//! deb-systemd-helper and systemctl.

use vmbake_disk::tree::{Kind, Tree};

use super::parts::{run, run_all, system};
use crate::bake_inputs::parts::{link, text};

const UNITS: [(&str, &str); 10] = [
    (
        "/usr/lib/systemd/system/x.service",
        "[Install]\nWantedBy=b.target a.target\nAlso=y.service z.socket\nRequiredBy=r.target\nAlias=al.service\nUpheldBy=u.target\n",
    ),
    ("/usr/lib/systemd/system/y.service", "[Install]\nWantedBy=yy.target\nAlso=x.service\nAlias=y1.service\n"),
    ("/usr/lib/systemd/system/z.socket", "[Install]\nWantedBy=zz.target\n"),
    ("/usr/lib/systemd/system/t@.service", "[Install]\nWantedBy=a.target\nDefaultInstance=one\n"),
    ("/usr/lib/systemd/system/w@.service", "[Install]\nWantedBy=w%i.target\n"),
    ("/usr/lib/systemd/system/n@.service", "[Install]\nWantedBy=a.target\n"),
    ("/usr/lib/systemd/system/static.service", "[Service]\nExecStart=/bin/true\n"),
    ("/usr/lib/systemd/system/off.service", "[Install]\nWantedBy=a.target\n"),
    ("/usr/lib/systemd/system-preset/10-off.preset", "# ours\ndisable off.*\nenable *\n"),
    ("/usr/lib/systemd/user/u.service", "[Install]\nWantedBy=default.target\n"),
];

const ETC: &str = "/etc/systemd/system";
const RECORDS: &str = "/var/lib/systemd/deb-systemd-helper-enabled";

/// All links and files below a directory.
fn below(tree: &Tree, dir: &str) -> String {
    let Some(top) = tree.lookup(dir.as_bytes()) else { return String::new() };
    let mut found: Vec<String> = tree
        .walk_from(top)
        .filter(|(path, ..)| !path.is_empty())
        .map(|(path, _, inode)| match &inode.kind {
            Kind::Symlink(to) => format!("{} -> {}\n", String::from_utf8_lossy(&path), String::from_utf8_lossy(to)),
            _ => format!("{}\n", String::from_utf8_lossy(&path)),
        })
        .collect();
    found.sort();
    found.concat()
}

fn statuses(commands: &str) -> (Tree, String) {
    let only = commands.lines().map(|line| line.split_once('\t').unwrap().1);
    let (tree, found, output) = run_all(system(&UNITS), only);
    assert_eq!(found.trim_end(), commands.trim_end());
    (tree, output)
}

#[test]
fn a_unit_is_enabled_with_all_that_it_names() {
    let tree = run(system(&UNITS), "set -e\ndeb-systemd-helper enable x.service").unwrap();
    let lib = "-> /usr/lib/systemd/system";
    let expected = format!(
        "/a.target.wants\n/a.target.wants/x.service {lib}/x.service\n/al.service {lib}/x.service\n/b.target.wants\n\
        /b.target.wants/x.service {lib}/x.service\n/r.target.requires\n/r.target.requires/x.service {lib}/x.service\n\
        /u.target.upholds\n/u.target.upholds/x.service {lib}/x.service\n/y1.service {lib}/y.service\n\
        /yy.target.wants\n/yy.target.wants/y.service {lib}/y.service\n/zz.target.wants\n\
        /zz.target.wants/z.socket {lib}/z.socket\n"
    );
    assert_eq!(below(&tree, ETC), expected);
    let names = ["zz.target.wants/z.socket", "al.service", "b.target.wants/x.service", "a.target.wants/x.service"];
    let more = ["r.target.requires/x.service", "y1.service", "yy.target.wants/y.service"];
    let listed: String = names.iter().chain(&more).map(|name| format!("{ETC}/{name}\n")).collect();
    assert_eq!(text(&tree, &format!("{RECORDS}/x.service.dsh-also")), listed);
    for name in names.iter().chain(&more) {
        assert_eq!(text(&tree, &format!("{RECORDS}/{name}")), "", "{name}");
    }
    assert!(!below(&tree, RECORDS).contains("upholds"));
    let purge = "deb-systemd-helper disable x.service\ndeb-systemd-helper purge x.service";
    let tree = run(system(&UNITS), &format!("deb-systemd-helper enable x.service\n{purge}")).unwrap();
    assert_eq!(below(&tree, ETC), format!("/u.target.upholds\n/u.target.upholds/x.service {lib}/x.service\n"));
    assert_eq!(below(&tree, RECORDS), "");
}

#[test]
fn the_helper_ends_as_the_real_one() {
    let (tree, _) = statuses(
        "1\tdeb-systemd-helper debian-installed z.socket
0\tdeb-systemd-helper --quiet was-enabled z.socket
1\tdeb-systemd-helper is-enabled z.socket
0\tdeb-systemd-helper update-state z.socket
1\tdeb-systemd-helper --quiet was-enabled z.socket
0\tdeb-systemd-helper enable z.socket
1\tdeb-systemd-helper is-enabled z.socket
0\tdeb-systemd-helper debian-installed z.socket
0\tdeb-systemd-helper reenable z.socket
0\tdeb-systemd-helper enable t@.service
0\tdeb-systemd-helper is-enabled t@.service
0\tdeb-systemd-helper enable n@.service
1\tdeb-systemd-helper enable n@foo.service
0\tdeb-systemd-helper enable static.service
0\tdeb-systemd-helper is-enabled static.service
1\tdeb-systemd-helper debian-installed static.service
1\tdeb-systemd-helper enable nix.service
0\tdeb-systemd-helper was-enabled nix.service
1\tdeb-systemd-helper update-state nix.service
0\tdeb-systemd-helper disable nix.service
0\tdeb-systemd-helper enable off.service
1\tdeb-systemd-helper was-enabled off.service
0\tdeb-systemd-helper mask static.service
0\tdeb-systemd-helper mask y.service
0\tdeb-systemd-helper unmask y.service
0\tdeb-systemd-helper --user enable u.service
0\tdeb-systemd-helper --user was-enabled u.service",
    );
    let lib = "-> /usr/lib/systemd/system";
    assert_eq!(
        below(&tree, ETC),
        format!(
            "/a.target.wants\n/a.target.wants/n@foo.service {lib}/n@.service\n/a.target.wants/t@one.service {lib}/t@.service\n\
            /static.service -> /dev/null\n"
        )
    );
    assert_eq!(below(&tree, "/var/lib/systemd/deb-systemd-helper-masked"), "/static.service\n");
    let user = format!("{ETC}/../user/default.target.wants/u.service");
    assert_eq!(link(&tree, &user.replace("/system/..", "")), "/usr/lib/systemd/user/u.service");
    let records = "/var/lib/systemd/deb-systemd-user-helper-enabled";
    assert_eq!(below(&tree, records), "/default.target.wants\n/default.target.wants/u.service\n/u.service.dsh-also\n");
}

/// The helper looks below `/lib` first.
#[test]
fn without_systemctl_the_helper_makes_the_links() {
    let script =
        "set -e\nrm /usr/bin/systemctl\ndeb-systemd-helper enable z.socket\ndeb-systemd-helper enable off.service";
    let tree = run(system(&UNITS), script).unwrap();
    for (name, unit) in [("zz.target.wants/z.socket", "z.socket"), ("a.target.wants/off.service", "off.service")] {
        assert_eq!(link(&tree, &format!("{ETC}/{name}")), format!("/lib/systemd/system/{unit}"));
    }
}

/// An upgrade whose unit has more dependencies gets them, unless an administrator has disabled the unit.
#[test]
fn a_new_version_enables_what_is_new() {
    let lines = "deb-systemd-helper enable z.socket\n\
        printf '[Install]\\nWantedBy=zz.target\\nWantedBy=more.target\\n' >/usr/lib/systemd/system/z.socket\n";
    let tree = run(system(&UNITS), &format!("{lines}deb-systemd-helper enable z.socket")).unwrap();
    assert_eq!(link(&tree, &format!("{ETC}/more.target.wants/z.socket")), "/lib/systemd/system/z.socket");
    let gone = "rm /etc/systemd/system/zz.target.wants/z.socket\ndeb-systemd-helper enable z.socket";
    let tree = run(system(&UNITS), &format!("{lines}{gone}")).unwrap();
    assert!(tree.lookup(format!("{ETC}/more.target.wants/z.socket").as_bytes()).is_none());
}

#[test]
fn systemctl_changes_files_alone() {
    let (tree, output) = statuses(
        "1\tsystemctl is-enabled z.socket
0\tsystemctl enable z.socket
0\tsystemctl is-enabled z.socket
0\tsystemctl is-enabled static
4\tsystemctl is-enabled nix
1\tsystemctl --quiet is-enabled off
0\tsystemctl enable n@foo.service
0\tsystemctl enable w@z.service
0\tsystemctl enable static.service
1\tsystemctl enable nix.service
0\tsystemctl preset off.service
0\tsystemctl enable off.service
0\tsystemctl mask y.service
1\tsystemctl is-enabled y.service
1\tsystemctl enable y.service
0\tsystemctl unmask y.service
0\tsystemctl mask nix.service
0\tsystemctl disable z.socket
0\tsystemctl disable nix2.service
0\tsystemctl --global enable u.service
0\tsystemctl daemon-reload
0\tsystemctl restart x.service
1\tsystemctl is-active x.service
1\tsystemctl
1\tsystemctl list-units
1\tsystemctl is-system-running
1\tsystemd-run true
0\tinvoke-rc.d x start",
    );
    assert_eq!(output, "disabled\nenabled\nstatic\nnot-found\nmasked\noffline\n");
    let lib = "-> /usr/lib/systemd/system";
    assert_eq!(
        below(&tree, ETC),
        format!(
            "/a.target.wants\n/a.target.wants/n@foo.service {lib}/n@.service\n/a.target.wants/off.service {lib}/off.service\n\
            /nix.service -> /dev/null\n/wz.target.wants\n/wz.target.wants/w@z.service {lib}/w@.service\n"
        )
    );
    let user = "/etc/systemd/user/default.target.wants/u.service";
    assert_eq!(link(&tree, user), "/usr/lib/systemd/user/u.service");
}

#[test]
fn what_is_not_known_of_units_stops_the_bake() {
    for line in [
        "deb-systemd-helper",
        "deb-systemd-helper enable",
        "deb-systemd-helper strange x.service",
        "deb-systemd-helper --strange enable x.service",
        "deb-systemd-helper enable /x.service",
        "systemctl enable",
        "systemctl show x.service",
        "systemctl --runtime enable x.service",
        "systemctl enable /x.service",
    ] {
        let error = run(system(&UNITS), line).map(|_| ()).expect_err(line);
        assert!(error.starts_with("own: its postinst (sha256 "), "{line}: {error}");
    }
    let unit = [("/usr/lib/systemd/system/p.service", "[Install]\nWantedBy=%H.target\n")];
    let error = run(system(&unit), "systemctl enable p.service").map(|_| ()).unwrap_err();
    assert!(
        error.ends_with("/usr/lib/systemd/system/p.service:2: WantedBy=%H.target is not a valid name for the unit"),
        "{error}"
    );
}
