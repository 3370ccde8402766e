//! Users and groups: adduser and the tools of shadow.

use vmbake_disk::tree::Tree;

use super::parts::{run, run_all, system};
use crate::bake_inputs::parts::text;

/// The files that `expected` lists after a line `== NAME` each, as the tree has them.
pub fn tables(tree: &Tree, expected: &str) -> String {
    let names = expected.lines().filter_map(|line| line.strip_prefix("== "));
    names.map(|name| format!("== {name}\n{}", text(tree, &format!("/etc/{name}")))).collect()
}

fn owner(tree: &Tree, path: &str) -> (u16, u32, u32) {
    let meta = &tree.inode(tree.lookup(path.as_bytes()).unwrap_or_else(|| panic!("{path}"))).meta;
    (meta.mode, meta.uid, meta.gid)
}

fn compare(commands: &str, expected: &str) -> (Tree, String) {
    let only = commands.lines().map(|line| line.split_once('\t').unwrap().1);
    let (tree, statuses, output) = run_all(system(&[]), only);
    assert_eq!(statuses, commands);
    assert_eq!(tables(&tree, expected), expected);
    (tree, output)
}

#[test]
fn adduser_writes_what_the_real_one_writes() {
    let (tree, _) = compare(include_str!("accounts/adduser.commands"), include_str!("accounts/adduser.tables"));
    for (path, expected) in [
        ("/var/lib/foo", (0o755, 102, 102)),
        ("/home/joe", (0o700, 1000, 1000)),
        ("/home/joe/.profile", (0o644, 1000, 1000)),
        ("/etc/.pwd.lock", (0o600, 0, 0)),
    ] {
        assert_eq!(owner(&tree, path), expected, "{path}");
    }
    for path in ["/var/lib/none", "/nonexistent", "/var/lib/foo/.profile"] {
        assert!(tree.lookup(path.as_bytes()).is_none(), "{path}");
    }
}

#[test]
fn the_tools_of_shadow_write_what_the_real_ones_write() {
    let (tree, output) = compare(include_str!("accounts/shadow.commands"), include_str!("accounts/shadow.tables"));
    assert_eq!(output, include_str!("accounts/shadow.output"));
    for (path, expected) in [
        ("/var/lib/sc", (0o700, 985, 4)),
        ("/var/lib/sc/.profile", (0o644, 985, 4)),
        ("/home/reg/.profile", (0o644, 1000, 1000)),
    ] {
        assert_eq!(owner(&tree, path), expected, "{path}");
    }
    assert!(tree.lookup(b"/var/lib/sb").is_none());
}

/// What useradd of shadow 4.17 left in a chroot with the same files.
#[test]
fn useradd_reads_its_defaults_and_takes_others() {
    let commands = "0\tuseradd -r -s /bin/bash -c 'Agent A' -m --skel /dev/null agent\n\
        0\tuseradd -r -K USERGROUPS_ENAB=no -M plain\n\
        0\tuseradd -m -K HOME_MODE=0750 -K UID_MIN=2000 -k /etc/own u1\n\
        0\tuseradd -m -N u3\n0\tuseradd -r u4\n0\tuseradd u5\n0\tuseradd -M u7\n";
    let base = system(&[
        ("/etc/default/useradd", "# useradd\nSHELL=/bin/bash\nHOME=/srv\nSKEL=/etc/other\nGROUP=adm\n"),
        ("/etc/login.defs", "UID_MIN 1000\nUID_MAX 60000\nUSERGROUPS_ENAB yes\nHOME_MODE 0700\nCREATE_HOME yes\n"),
        ("/etc/own/.own", "own\n"),
        ("/etc/other/.other", "other\n"),
    ]);
    let (tree, statuses, _) = run_all(base, commands.lines().map(|line| line.split_once('\t').unwrap().1));
    assert_eq!(statuses, commands);
    let passwd = text(&tree, "/etc/passwd");
    let added = passwd.lines().rev().take(7).collect::<Vec<_>>();
    assert_eq!(
        added.into_iter().rev().collect::<Vec<_>>(),
        [
            "agent:x:987:987:Agent A:/srv/agent:/bin/bash",
            "plain:x:986:4::/srv/plain:/bin/bash",
            "u1:x:2000:2000::/srv/u1:/bin/bash",
            "u3:x:2001:4::/srv/u3:/bin/bash",
            "u4:x:985:985::/srv/u4:/bin/bash",
            "u5:x:2002:2002::/srv/u5:/bin/bash",
            "u7:x:2003:2003::/srv/u7:/bin/bash",
        ]
    );
    for (path, expected) in [
        ("/srv/agent", (0o700, 987, 987)),
        ("/srv/u1", (0o750, 2000, 2000)),
        ("/srv/u1/.own", (0o644, 2000, 2000)),
        ("/srv/u3", (0o700, 2001, 4)),
        ("/srv/u3/.other", (0o644, 2001, 4)),
        ("/srv/u5/.other", (0o644, 2002, 2002)),
    ] {
        assert_eq!(owner(&tree, path), expected, "{path}");
    }
    for path in ["/srv/agent/.other", "/srv/plain", "/srv/u1/.other", "/srv/u4", "/srv/u7"] {
        assert!(tree.lookup(path.as_bytes()).is_none(), "{path}");
    }
    for (command, settings) in
        [("useradd -k /etc/own u", ""), ("useradd -r -K NIX=1 u", ""), ("useradd u", "CREATE_MAIL_SPOOL=yes\n")]
    {
        let error = run(system(&[("/etc/default/useradd", settings)]), command).unwrap_err();
        assert!(error.contains("is not supported"), "{command}: {error}");
    }
}

/// adduser 3.134 fills up the fields of a comment, and has fewer exit statuses.
#[test]
fn adduser_of_debian_12_differs() {
    let status = "Package: adduser\nStatus: install ok installed\nArchitecture: all\nVersion: 3.134\n\n";
    let base = system(&[("/var/lib/dpkg/status", status)]);
    let commands = [
        "adduser --system --gecos 'Foo bar' foo",
        "adduser --system root",
        "deluser nix",
        "delgroup nix",
        "deluser foo adm",
    ];
    let (tree, statuses, _) = run_all(base, commands.into_iter());
    assert!(text(&tree, "/etc/passwd").contains("foo:x:101:65534:Foo bar,,,:/nonexistent:/usr/sbin/nologin\n"));
    let found: String = statuses.lines().map(|line| &line[..1]).collect();
    assert_eq!(found, "01236");
}

#[test]
fn adduser_reads_its_configuration() {
    let conf = "FIRST_SYSTEM_UID=300\nLAST_SYSTEM_UID=301\nFIRST_SYSTEM_GID=400\nDSHELL=/bin/zsh\nDHOME=/srv/home\n\
        DIR_MODE=0750\nADD_EXTRA_GROUPS=0\n";
    let commands = [
        "adduser --system --group a",
        "adduser --allow-bad-names --system --stdoutmsglevel=warn b",
        "adduser --system c",
        "adduser --gecos= --disabled-password d",
    ];
    let (tree, statuses, _) = run_all(system(&[("/etc/adduser.conf", conf)]), commands.into_iter());
    let passwd = text(&tree, "/etc/passwd");
    let new: Vec<&str> = passwd.lines().skip(5).collect();
    assert_eq!(
        new,
        [
            "a:x:300:400::/nonexistent:/usr/sbin/nologin",
            "b:x:301:65534::/nonexistent:/usr/sbin/nologin",
            "d:x:1000:1000::/srv/home/d:/bin/zsh",
        ]
    );
    assert!(statuses.starts_with("0\tadduser --system --group a\n0\t") && statuses.contains("42\tadduser --system c"));
    assert_eq!(owner(&tree, "/srv/home/d").0, 0o750);
    assert!(text(&tree, "/etc/group").contains("users:x:100:\n"));
}

#[test]
fn what_is_not_known_of_accounts_stops_the_bake() {
    for line in [
        "adduser joe",
        "adduser --system --conf /x a",
        "adduser --system --uid x a",
        "adduser --system --gecos a:b a",
        "deluser --remove-home root",
        "useradd -D",
        "useradd -r -d a:b a",
        "useradd -r -u x a",
        "usermod -u x root",
        "usermod -e 2030-01-01 root",
        "usermod -l a:b root",
        "usermod --add-subuids 1 root",
        "groupadd -g x a",
        "groupmod -g x adm",
        "gpasswd adm",
        "gpasswd -a root -d root adm",
        "passwd root",
        "passwd -l -u root",
        "chage -l root",
        "chsh root",
        "getent netgroup x",
        "getent services",
        "groups",
    ] {
        let error = run(system(&[]), line).map(|_| ()).expect_err(line);
        assert!(error.starts_with("own: its postinst (sha256 "), "{line}: {error}");
    }
}

/// Accounts of a script that does not come to its end are not there.
#[test]
fn accounts_of_a_script_that_waits_are_taken_back() {
    let tree = run(system(&[]), "adduser --system a\nssh-keygen -A").unwrap();
    assert!(!text(&tree, "/etc/passwd").contains("a:x:101"));
    assert!(tree.lookup(b"/etc/passwd-").is_none());
}
