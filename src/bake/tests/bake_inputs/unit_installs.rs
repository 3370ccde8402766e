//! Links of enabled units. The expected results are those of `systemctl --root=DIR enable` of systemd 257.13 for the same files: the links,
//! or an error. A unit in `Also` that cannot be read is refused here (`also broken`, `also dir`), where systemctl only warns.

use std::collections::BTreeMap;

use serde::Deserialize;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::keys::with_links;
use super::parts::{Part, bake_onto, base_with, warnings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    unit: String,
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    /// Links below `/etc/systemd/system`, in addition to those of `links`.
    #[serde(default)]
    links_made: Option<BTreeMap<String, String>>,
    #[serde(default)]
    refused: Option<String>,
}

fn enable(base: Tree, unit: &str) -> Result<Tree, String> {
    bake_onto(base, &[] as &[Part], &format!(r#", "units": {{"enable": ["{unit}"]}}"#))
}

/// The links below `/etc/systemd/system`.
fn made(tree: &Tree) -> BTreeMap<String, String> {
    let Some(top) = tree.lookup(b"/etc/systemd/system") else { return BTreeMap::new() };
    let links = tree.walk_from(top).filter_map(|(path, _, inode)| match &inode.kind {
        Kind::Symlink(to) => Some((String::from_utf8(path).unwrap(), String::from_utf8(to.clone()).unwrap())),
        _ => None,
    });
    links.map(|(path, to)| (path[1..].to_owned(), to)).collect()
}

#[test]
fn enabling_is_that_of_systemctl() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("unit_installs.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let files: Vec<(&str, &str)> = case.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let links: Vec<(&str, &str)> = case.links.iter().map(|(path, to)| (path.as_str(), to.as_str())).collect();
        let found = enable(with_links(base_with(&files), &links), &case.unit);
        let is_right = match (&found, &case.refused, &case.links_made) {
            (Err(error), Some(expected), None) => error.contains(expected.as_str()),
            (Ok(tree), None, Some(expected)) => {
                let mut made = made(tree);
                made.retain(|name, to| case.links.get(&format!("/etc/systemd/system/{name}")) != Some(to));
                made == *expected
            }
            _ => false,
        };
        if !is_right {
            let found = found.map(|tree| made(&tree));
            wrong.push(format!("{}: {found:?}, expected {:?} {:?}", case.name, case.links_made, case.refused));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn with_bytes(path: &str, bytes: Vec<u8>) -> Tree {
    let mut tree = base_with(&[(path, "")]);
    let origin = tree.add_origin(Origin::default());
    let len = bytes.len() as u64;
    let source = tree.sources_mut().add(std::sync::Arc::new(bytes));
    let kind = Kind::File(vmbake_disk::source::Map::whole(source, 0, len));
    tree.place(path.as_bytes(), Inode { meta: Metadata::root(0o644, Timestamp::default()), kind, origin }).unwrap();
    tree
}

#[test]
fn a_unit_that_systemd_cannot_read_is_refused_with_its_line() {
    let unit = "/usr/lib/systemd/system/u.service";
    let long = |before: usize, after: usize| {
        format!("[Install]\nWantedBy=a.target {}\\\n{}b.target\n", " ".repeat(before), " ".repeat(after)).into_bytes()
    };
    for (bytes, expected) in [
        (b"[Unit]\nDescription=caf\xe9\n[Install]\nWantedBy=a.target\n".to_vec(), Some("u.service:2: is not UTF-8")),
        (b"# caf\xe9\n[Install]\nWantedBy=a.target\n".to_vec(), None),
        (long(1 << 20, 0), Some("u.service:2: is longer than 1048576 bytes")),
        (long(600_000, 600_000), Some("u.service:3: is longer than 1048576 bytes")),
        (long(100_000, 600_000), None),
        (b"[Install]\nWantedBy=a.target\n[Unit\n".to_vec(), Some("u.service:3: \"[Unit\" is not a section header")),
    ] {
        let found = enable(with_bytes(unit, bytes), "u.service").map(|_| ());
        match expected {
            None => found.unwrap(),
            Some(expected) => {
                let error = found.unwrap_err();
                assert!(error.contains(&format!("cannot be enabled: /usr/lib/systemd/system/{expected}")), "{error}");
            }
        }
    }
}

#[test]
fn a_unit_that_nothing_starts_is_a_warning() {
    let base = || {
        base_with(&[
            (
                "/usr/lib/systemd/system/u.service",
                "[Service]\nSuccessAction=exit\n[Install]\nWantedBy=multiuser.target multi-user.target dev-a.device\n",
            ),
            ("/usr/lib/systemd/system/multi-user.target", "[Unit]\n"),
        ])
    };
    let keys = r#", "units": {"enable": ["u.service"]}"#;
    let expected = "layer k: unit u.service is enabled for multiuser.target, which is not in the image";
    assert_eq!(warnings(base(), &[], keys), [expected]);
}

#[test]
fn a_cron_job_of_an_unknown_user_is_a_warning() {
    let files = [("/usr/lib/sysusers.d/x.conf", "u later - - -\n"), ("/etc/passwd", "root:x:0:0::/:\n")];
    let unknown = "layer k: cron skips /etc/cron.d/x: line 2: the image does not have the user stranger";
    for (user, expected) in [("root", None), ("later", None), ("stranger", Some(unknown))] {
        let keys = format!(r##", "files": {{"/etc/cron.d/x": {{"content": "# c\n@daily {user} true\n"}}}}"##);
        assert_eq!(warnings(base_with(&files), &[], &keys), expected.as_slice(), "{user}");
    }
}

#[test]
fn settings_that_no_program_reads_are_warnings() {
    let files =
        r#", "files": {"/etc/hostname": {"content": "box\n"}, "/etc/sysctl.conf": {"content": "vm.swappiness=1\n"}}"#;
    let sysctl = "layer k: /etc/sysctl.conf is not read at boot: systemd-sysctl reads /etc/sysctl.d/*.conf";
    let hostname = "layer k: /etc/hostname is replaced by cloud-init on the first boot; use the key `hostname`, which prevents this";
    let cloud = ("/usr/bin/cloud-init", "");
    for (base, expected) in [
        (vec![], vec![sysctl]),
        (vec![cloud], vec![hostname, sysctl]),
        (vec![cloud, ("/etc/cloud/cloud.cfg.d/9.cfg", "preserve_hostname: true\n")], vec![sysctl]),
        (vec![("/etc/sysctl.d/99-sysctl.conf", "")], vec![]),
    ] {
        assert_eq!(warnings(base_with(&base), &[], files), expected);
    }
    let rules = r#", "files": {"/etc/sudoers.d/ops": {"content": "ops ALL=(ALL) ALL\n"}}"#;
    let sudo =
        "layer k: /etc/sudoers.d/ops has no effect: /usr/bin/sudo is not in the image; add \"sudo\" to `packages`";
    assert_eq!(warnings(base_with(&[]), &[], rules), [sudo]);
    assert!(warnings(base_with(&[("/usr/bin/sudo", "")]), &[], rules).is_empty());
}

#[test]
fn what_a_layer_refers_to_and_the_image_lacks_is_a_warning() {
    let keys = r#", "symlinks": {"/etc/a": "/usr/none", "/etc/b": "/run/none", "/etc/c": "passwd", "/etc/d": "c"},
        "users": {"u": {"id": 901, "shell": "/bin/zsh"}, "v": {"id": 902}}"#;
    let expected = [
        "layer k: the link /etc/a leads to /usr/none, which is not in the image",
        "layer k: user u cannot log in: the shell /bin/zsh is not in the image",
    ];
    assert_eq!(warnings(base_with(&[]), &[], keys), expected);
}
