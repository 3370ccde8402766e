//! Users that may log in, compared with the tools of shadow, and rules for sudo, checked by visudo.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use vmbake_disk::tree::Tree;

use super::judge::{as_root, of_dir, of_tree, write};
use super::parts::{Part, bake_layers, bake_onto, base_with, text};
use crate::tools::have;

/// The day of the image, which [`super::parts`] sets.
const EPOCH: &str = "1700000000";

const HASH: &str = "$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnSq.qc.eoxqOmSuNp2xS0ktL3nh/";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ a@b";

fn base() -> Tree {
    base_with(&[
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
        ("/etc/shadow", "root:*:19000:0:99999:7:::\n"),
        ("/etc/group", "root:x:0:\nsudo:x:27:\nadm:x:4:\n"),
        ("/etc/gshadow", "root:*::\nsudo:*::\nadm:*::\n"),
        ("/etc/subuid", ""),
        ("/etc/subgid", ""),
        (
            "/etc/login.defs",
            "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nHOME_MODE 0700\nPASS_MAX_DAYS 99999\nPASS_MIN_DAYS 0\n\
             PASS_WARN_AGE 7\nUSERGROUPS_ENAB yes\nENCRYPT_METHOD YESCRYPT\nSUB_UID_MIN 100000\nSUB_GID_MIN 100000\n",
        ),
        ("/etc/skel/.bashrc", "# bash\n"),
        ("/usr/bin/sudo", ""),
    ])
}

fn bake(keys: &str) -> Result<Tree, String> {
    bake_onto(base(), &[] as &[Part], keys)
}

fn users(more: &str) -> String {
    format!(r#", "users": {{"ops": {{"id": 1500, "shell": "/bin/bash"{more}}}}}"#)
}

#[test]
fn users_are_those_of_useradd() {
    let dir = tempfile::tempdir().unwrap();
    let Some(prefix) = as_root(dir.path()).filter(|prefix| prefix.is_empty() && have(&["useradd", "grpck", "pwck"]))
    else {
        return crate::tools::skip::skip("needs root and the tools of shadow");
    };
    assert!(prefix.is_empty());
    let range = r#""subordinate": {"start": 100000, "count": 65536}"#;
    let tree = bake(&users(&format!(r#", "groups": ["sudo", "adm"], "password_hash": "{HASH}", {range}"#))).unwrap();
    let root = dir.path().join("root");
    write(&base(), &root);
    let shadow = ["/etc/shadow", "/etc/gshadow"].map(|path| (path, 0o644));
    for (path, mode) in shadow {
        fs::set_permissions(root.join(&path[1..]), fs::Permissions::from_mode(mode)).unwrap();
    }
    let output = Command::new("useradd")
        .arg("--prefix")
        .arg(&root)
        .arg("-k")
        .arg(root.join("etc/skel"))
        .args(["-m", "-u", "1500", "-U", "-s", "/bin/bash", "-G", "sudo,adm", "-p", HASH, "ops"])
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut expected, mut found) = (BTreeMap::new(), of_tree(&tree));
    of_dir(&root, &root, &mut expected);
    let is_compared = |path: &String| {
        let tables = ["passwd", "shadow", "group", "gshadow", "subuid", "subgid"];
        path.starts_with("/home") || tables.iter().any(|name| *path == format!("/etc/{name}"))
    };
    for all in [&mut expected, &mut found] {
        all.retain(|path, _| is_compared(path));
    }
    assert_eq!(found, expected);

    // Both look for the accounts below the directory.
    let baked = dir.path().join("baked");
    write(&tree, &baked);
    let output = Command::new("grpck").args(["-r", "-R"]).arg(&baked).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let output = Command::new("pwck").args(["-r", "-R"]).arg(&baked).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let bad = |line: &&str| line.contains("ops") && !line.contains("program '/bin/bash' does not exist");
    assert_eq!(said.lines().filter(bad).collect::<Vec<_>>(), [] as [&str; 0]);
}

#[test]
fn keys_belong_to_the_user() {
    let keys = format!(r#", "ssh_authorized_keys": ["{KEY}", "{KEY}2"]"#);
    let tree = bake(&users(&keys)).unwrap();
    assert_eq!(text(&tree, "/home/ops/.ssh/authorized_keys"), format!("{KEY}\n{KEY}2\n"));
    for (path, expected) in [
        ("/home/ops", (0o700, 1500, 1500)),
        ("/home/ops/.bashrc", (0o644, 1500, 1500)),
        ("/home/ops/.ssh", (0o700, 1500, 1500)),
        ("/home/ops/.ssh/authorized_keys", (0o600, 1500, 1500)),
    ] {
        let meta = &tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta;
        assert_eq!((meta.mode, meta.uid, meta.gid), expected, "{path}");
    }
    assert!(text(&tree, "/etc/shadow").contains("ops:!:19675:"));
}

/// As `chpasswd -e` does for a user that is there.
#[test]
fn a_user_of_the_base_gets_the_password() {
    let line = |password: &str, days: &str| format!("ops:{password}:{days}:0:99999:7:::\n");
    for (before, after) in [(line("!", "19000"), line(HASH, "19675")), (line(HASH, "19000"), line(HASH, "19000"))] {
        let base = base_with(&[
            ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nops:x:1500:1500::/home/ops:/bin/bash\n"),
            ("/etc/group", "root:x:0:\nops:x:1500:\n"),
            ("/etc/shadow", &before),
        ]);
        let keys = users(&format!(r#", "password_hash": "{HASH}""#));
        let tree = bake_onto(base, &[] as &[Part], &keys).unwrap();
        assert_eq!(text(&tree, "/etc/shadow"), after);
    }
}

#[test]
fn what_is_no_login_is_refused() {
    for (more, expected) in [
        (r#", "password_hash": "secret""#, "is not a password hash"),
        (r#", "password_hash": "$1$salt$hash""#, "is not a password hash"),
        (r#", "ssh_authorized_keys": ["AAAA"]"#, "is not a valid public key"),
    ] {
        let error = bake(&users(more)).unwrap_err();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn rules_for_sudo_become_files() {
    let tree = bake(r#", "sudoers": {"10-ops": ["%sudo ALL=(ALL) NOPASSWD: ALL"]}"#).unwrap();
    assert_eq!(text(&tree, "/etc/sudoers.d/10-ops"), "%sudo ALL=(ALL) NOPASSWD: ALL\n");
    let meta = &tree.inode(tree.lookup(b"/etc/sudoers.d/10-ops").unwrap()).meta;
    assert_eq!((meta.mode, meta.uid, meta.gid), (0o440, 0, 0));
    for (keys, expected) in [
        (r#", "sudoers": {"10-ops": "ops ALL=ALL\nops\n"}"#, "line 2: expected the name of a user, group or host"),
        (r#", "sudoers": {"ops.conf": "ops ALL=ALL\n"}"#, "sudo skips files with other names"),
        (
            r#", "sudoers": {"a": "ops ALL=ALL\n"}, "files": {"/etc/sudoers.d/a": {"content": "x"}}"#,
            "\"/etc/sudoers.d/a\" is duplicated in the layer",
        ),
    ] {
        let error = bake(keys).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let rule = r#", "sudoers": {"a": "ops ALL=ALL\n"}"#;
    let error = bake_onto(base_with(&[]), &[] as &[Part], rule).unwrap_err();
    assert!(error.contains("/etc/sudoers.d/a: is read by /usr/bin/sudo, which is not in the image"), "{error}");
    let other = rule.replace("ops", "adm");
    let error = bake_layers(&[("a", rule, &[]), ("b", &other, &[])]).unwrap_err();
    assert!(error.contains("a: conflicting values in `sudoers` of the layers a and b"), "{error}");
}

/// What the grammar takes and refuses is what visudo does.
#[test]
fn visudo_agrees_on_rules() {
    if !have(&["visudo"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for rule in [
        "a ALL=(ALL:ALL) ALL",
        "%a ALL=(:adm) NOPASSWD:/bin/a, PASSWD: /bin/b",
        "a,b ALL,!h=NOEXEC:NOPASSWD:/bin/a -x",
        "a ALL=/bin/a \"\"",
        "a ALL=/bin/[a-z]* *",
        "a ALL=/bin/",
        "+net ALL=ALL",
        "#1000 ALL=ALL",
        "a 10.0.0.0/8=ALL",
        "a ALL=^/bin/a$ ^-x$",
        "a ALL=(ALL) ALL : h=/bin/b",
        "a ALL=sudoedit /etc/x",
        "a ALL=() ALL",
        "a ALL=!/bin/a",
        "Defaults !lecture,tty_tickets,!fqdn",
        "Defaults>root env_reset",
        "Defaults@h passwd_tries=5",
        "Defaults env_keep -= \"A\"",
        "Host_Alias H = 10.0.0.1, h : I = i",
        "Runas_Alias R = root",
        "a ALL=(R) ALL",
        "a",
        "a ALL",
        "a =ALL",
        "ALL=ALL",
        "a ALL=(root ALL",
        "a ALL=root) ALL",
        "a ALL=bin/a",
        "a ALL=NOPASSWD ALL",
        "a ALL=,ALL",
        "a b c=ALL",
        "a,,b ALL=ALL",
        "Defaults 1x",
        "Defaults =",
        "Defaultsenv_reset",
        "Cmnd_Alias a = /bin/a",
        "Cmnd_Alias A /bin/a",
        "User_Alias A = ",
        "@include",
    ] {
        let file = dir.path().join("rules");
        let _ = fs::remove_file(&file);
        fs::write(&file, format!("{rule}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o440)).unwrap();
        let judged = Command::new("visudo").arg("-cf").arg(&file).env("PATH", path()).output().unwrap();
        let baked = bake(&format!(r#", "sudoers": {{"r": {:?}}}"#, format!("{rule}\n")));
        let said = String::from_utf8_lossy(&judged.stderr).into_owned();
        assert_eq!(baked.is_ok(), judged.status.success(), "{rule}: {said} {:?}", baked.err());
    }
}

fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}
