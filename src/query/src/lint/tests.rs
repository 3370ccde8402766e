//! Tests of the lint rules.

use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::{Finding, IMAGE_NAME, LintStatus, RULES, lint};

enum Node {
    File(&'static str),
    Link(&'static str),
    Dir,
    /// A file with this mode.
    Mode(u16, &'static str),
    /// A directory with this mode.
    DirMode(u16),
    /// A file with this mode, user and group.
    Owned(u16, u32, u32),
}
use Node::{Dir, DirMode, File, Link, Mode, Owned};

fn put(tree: &mut Tree, path: &str, node: &Node) {
    let mode = match node {
        Mode(mode, _) | DirMode(mode) | Owned(mode, ..) => *mode,
        _ if path.starts_with("/etc/shadow") => 0o640,
        _ => 0o755,
    };
    let origin = tree.add_origin(Origin::default());
    let parent = path.rsplit_once('/').unwrap().0;
    tree.make_dirs(parent.as_bytes(), &Metadata::root(0o755, Timestamp::default()), origin).unwrap();
    let mut meta = Metadata::root(mode, Timestamp::default());
    if let Owned(_, uid, gid) = node {
        (meta.uid, meta.gid) = (*uid, *gid);
    }
    let kind = match node {
        Owned(..) => Kind::File(Map::default()),
        File(content) | Mode(_, content) => {
            let source = tree.sources_mut().add(Arc::new(content.as_bytes().to_vec()));
            Kind::File(Map::whole(source, 0, content.len() as u64))
        }
        Link(target) => Kind::Symlink(target.as_bytes().to_vec()),
        Dir | DirMode(_) => Kind::directory(),
    };
    tree.place(path.as_bytes(), Inode { meta, kind, origin }).unwrap();
}

/// A tree that fulfills all rules, with allowed files that resemble violations.
fn clean() -> Tree {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    for (path, node) in [
        ("/etc/machine-id", File("")),
        ("/var/lib/dbus/machine-id", Link("/etc/machine-id")),
        ("/etc/ssh/sshd_config", File("Port 22\n")),
        ("/var/log/empty.log", File("")),
        ("/var/log/journal", Dir),
        ("/var/lib/apt/lists/lock", File("")),
        ("/var/lib/apt/lists/partial", Dir),
        ("/var/lib/apt/lists/auxfiles", Dir),
        ("/var/cache/apt/archives/partial", Dir),
        ("/var/cache/apt/archives/lock", File("")),
        ("/tmp", Dir),
        ("/var/tmp", Dir),
        ("/root/.bashrc", File("x")),
        ("/home/debian/.ssh", Dir),
        ("/var/lib/cloud/instances", Dir),
        ("/var/lib/cloud/seed/nocloud/meta-data", File("x")),
        ("/var/lib/dhcp", Dir),
        ("/usr/lib/os-release", File("NAME=Debian\nIMAGE_ID=\"node\"\nIMAGE_VERSION=1\n")),
        ("/etc/os-release", Link("../usr/lib/os-release")),
        ("/etc/shadow", File("root:*:19000:0:99999:7:::\ndaemon:!*:::\ndebian:!:\nsshd:!!:\nroot:!unprovisioned:\n")),
        ("/etc/passwd", File("root:x:0:0:root:/root:/bin/bash\n")),
        ("/etc/gshadow", Mode(0o640, "root:*::\n")),
        ("/etc/sudoers.d/README", Mode(0o440, "#\n")),
        ("/var/mail", DirMode(0o3777)),
        ("/bin", Link("usr/bin")),
        ("/usr/bin/su", Mode(0o4755, "s")),
        ("/usr/bin/chage", Mode(0o2755, "c")),
        ("/var/lib/dpkg/info/login.list", File("/.\n/bin/su\n/usr/bin/chage\n")),
        ("/usr/bin/locate", Mode(0o2755, "l")),
        ("/var/lib/dpkg/info/findutils.list", File("/usr/bin/find\n/usr/bin/locate\n")),
        ("/var/lib/dpkg/statoverride", File("root locate 2755 /bin/locate\n")),
        ("/etc/ssl/certs/a.pem", File("-----BEGIN CERTIFICATE-----\n")),
        ("/etc/ssl/private/a.key", Mode(0o640, "-----BEGIN PRIVATE KEY-----\n")),
        ("/usr/share/doc/x/a.key", File("-----BEGIN PRIVATE KEY-----\n")),
    ] {
        put(&mut tree, path, &node);
    }
    tree
}

#[test]
fn a_clean_tree_keeps_every_rule() {
    let findings = lint(&clean());
    assert!(findings.iter().all(|finding| finding.status == LintStatus::Ok), "{findings:#?}");
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, RULES.iter().map(|rule| rule.name).collect::<Vec<_>>());
}

#[test]
fn every_violation_is_found_by_its_rule_alone() {
    let hash = "root:$y$j9T$secret$hash:19000::::::\n";
    let cases: &[(&str, &str, Node, &str)] = &[
        ("machine-id", "/etc/machine-id", File("b08dfa6083e7567a1921a715000001fb\n"), "set, 33 bytes"),
        ("dbus-machine-id", "/var/lib/dbus/machine-id", File(""), "regular file, 0 bytes"),
        ("dbus-machine-id", "/var/lib/dbus/machine-id", Link("/etc/other"), "symbolic link to /etc/other"),
        ("ssh-host-keys", "/etc/ssh/ssh_host_ed25519_key", File("k"), "regular file, 1 bytes"),
        ("random-seed", "/var/lib/systemd/random-seed", File("r"), "regular file, 1 bytes"),
        ("random-seed", "/var/lib/urandom/random-seed", File("r"), "regular file, 1 bytes"),
        ("random-seed", "/loader/random-seed", File("r"), "regular file, 1 bytes"),
        ("credential-secret", "/var/lib/systemd/credential.secret", File("s"), "regular file, 1 bytes"),
        ("logs", "/var/log/apt/history.log", File("log"), "regular file, 3 bytes"),
        ("logs", "/var/lib/lastlog/lastlog2.db", File("l"), "regular file, 1 bytes"),
        ("logs", "/var/lib/wtmpdb/wtmp.db", File("w"), "regular file, 1 bytes"),
        ("journal", "/var/log/journal/0123", Dir, "directory, 0 entries"),
        ("apt-lists", "/var/lib/apt/lists/deb_InRelease", File(""), "regular file, 0 bytes"),
        ("apt-lists", "/var/lib/apt/lists/partial/x", File(""), "regular file, 0 bytes"),
        ("apt-cache", "/var/cache/apt/pkgcache.bin", File("x"), "regular file, 1 bytes"),
        ("apt-cache", "/var/cache/apt/archives/a_1_all.deb", File("x"), "regular file, 1 bytes"),
        ("tmp", "/tmp/x", Link("y"), "symbolic link to y"),
        ("tmp", "/var/tmp/.hidden", Dir, "directory, 0 entries"),
        ("shell-history", "/root/.bash_history", File("ls"), "regular file, 2 bytes"),
        ("shell-history", "/home/debian/.zsh_history", File(""), "regular file, 0 bytes"),
        ("authorized-keys", "/root/.ssh/authorized_keys", File("ssh-rsa A"), "regular file, 9 bytes"),
        ("authorized-keys", "/home/debian/.ssh/authorized_keys2", File("k"), "regular file, 1 bytes"),
        ("cloud-init-state", "/var/lib/cloud/instance", Link("instances/i"), "symbolic link to instances/i"),
        ("cloud-init-state", "/var/lib/cloud/data/result.json", File("{}"), "regular file, 2 bytes"),
        ("cloud-init-state", "/var/lib/cloud/sem/once", File(""), "regular file, 0 bytes"),
        ("dhcp-leases", "/var/lib/dhcp/dhclient.eth0.leases", File(""), "regular file, 0 bytes"),
        ("dhcp-leases", "/var/lib/dhcpcd/duid", File("d"), "regular file, 1 bytes"),
        ("dhcp-leases", "/var/lib/NetworkManager/secret_key", File("s"), "regular file, 1 bytes"),
        ("dhcp-leases", "/var/lib/NetworkManager/a.lease", File(""), "regular file, 0 bytes"),
        ("dhcp-leases", "/run/systemd/netif/leases/2", File(""), "regular file, 0 bytes"),
        ("image-name", "/etc/os-release", File("IMAGE_ID=a\nIMAGE_VERSION=\n"), "IMAGE_VERSION not set"),
        ("image-name", "/etc/os-release", File("#IMAGE_ID=a\n"), "IMAGE_ID and IMAGE_VERSION not set"),
        ("passwords", "/etc/shadow", File(hash), "account root has a password hash"),
        ("passwords", "/etc/shadow", File("a:*:1\nb:!$6$x$y:1\n"), "account b has a locked password hash"),
        ("passwords", "/etc/shadow", File("b:!!unprovisioned:1\n"), "account b has a locked password hash"),
        ("passwords", "/etc/shadow-", File("c::1::::::\n"), "account c needs no password"),
        ("passwords", "/etc/passwd", File("d::0:0::/:/bin/sh\n"), "account d needs no password"),
        ("password-files", "/etc/shadow", Mode(0o644, "root:*:\n"), "regular file, 0644 0:0"),
        ("password-files", "/etc/gshadow", Mode(0o660, "root:*:\n"), "regular file, 0660 0:0"),
        ("password-files", "/etc/shadow-", Mode(0o604, "root:*:\n"), "regular file, 0604 0:0"),
        ("password-files", "/etc/shadow", Owned(0o640, 0, 100), "regular file, 0640 0:100"),
        ("password-files", "/etc/gshadow", Link("/etc/x"), "symbolic link instead of a regular file"),
        ("sudoers", "/etc/sudoers.d/x", Mode(0o464, "x"), "regular file, 0464 0:0"),
        ("sudoers", "/etc/sudoers.d", DirMode(0o775), "directory, 0775 0:0"),
        ("world-writable", "/etc/x.conf", Mode(0o666, "x"), "regular file, 0666 0:0"),
        ("world-writable", "/srv/x", DirMode(0o777), "directory, 0777 0:0"),
        ("privileged-files", "/usr/bin/bash", Mode(0o4755, "x"), "regular file, 4755 0:0"),
        ("privileged-files", "/opt/x/chage", Mode(0o2755, "x"), "regular file, 2755 0:0"),
        ("shipped-modes", "/usr/bin/find", Mode(0o4755, "x"), "regular file, 4755 0:0"),
        ("shipped-modes", "/usr/bin/locate", Mode(0o6755, "x"), "regular file, 6755 0:0"),
        ("system-files", "/usr/lib/x/y", Owned(0o644, 1000, 0), "regular file, 0644 1000:0"),
        ("system-files", "/etc/cron.d/x", Owned(0o664, 0, 1000), "regular file, 0664 0:1000"),
        (
            "private-keys",
            "/etc/agent/tls.key",
            Mode(0o644, "-----BEGIN RSA PRIVATE KEY-----\n"),
            "regular file, 0644 0:0",
        ),
        (
            "private-keys",
            "/etc/dropbear/ssh_host_rsa_key",
            Mode(0o644, "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            "regular file, 0644 0:0",
        ),
        (
            "private-keys",
            "/home/a/.ssh/id_ed25519",
            Mode(0o604, "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            "regular file, 0604 0:0",
        ),
    ];
    for (rule, path, node, evidence) in cases {
        let mut tree = clean();
        put(&mut tree, path, node);
        let bad: Vec<_> = lint(&tree).into_iter().filter(|finding| finding.status != LintStatus::Ok).collect();
        let status = if *rule == IMAGE_NAME { LintStatus::Warning } else { LintStatus::Error };
        let expected = Finding { rule, path: (*path).to_owned(), evidence: (*evidence).to_owned(), status };
        assert_eq!(bad, [expected]);
        assert!(!bad[0].evidence.contains('$'), "the evidence contains a secret");
    }
    for (rule, ..) in cases.iter() {
        assert!(RULES.iter().any(|known| known.name == *rule));
    }
    for rule in RULES {
        assert!(cases.iter().any(|(name, ..)| *name == rule.name), "{} has no case", rule.name);
    }
}

#[test]
fn a_missing_or_odd_machine_id_is_told() {
    let bad = |tree: &Tree| lint(tree).into_iter().find(|finding| finding.status != LintStatus::Ok);
    let mut tree = clean();
    put(&mut tree, "/etc/machine-id", &File("uninitialized\n"));
    assert_eq!(bad(&tree), None);
    tree.remove(b"/etc/machine-id").unwrap();
    assert_eq!(bad(&tree).unwrap().evidence, "/etc/machine-id: no such file or directory");
}

#[test]
fn directories_behind_links_are_looked_at() {
    let mut tree = clean();
    tree.remove(b"/var/log").unwrap();
    put(&mut tree, "/data/log/syslog", &File("secret"));
    put(&mut tree, "/var/log", &Link("../data/log"));
    let bad: Vec<_> = lint(&tree)
        .into_iter()
        .filter(|finding| finding.status != LintStatus::Ok)
        .map(|finding| finding.path)
        .collect();
    assert_eq!(bad, ["/var/log/syslog"]);
}

#[test]
fn an_empty_tree_is_no_image() {
    let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let bad: Vec<_> = lint(&tree)
        .into_iter()
        .filter(|finding| finding.status != LintStatus::Ok)
        .map(|finding| finding.rule)
        .collect();
    assert_eq!(bad, ["machine-id", "image-name"]);
}
