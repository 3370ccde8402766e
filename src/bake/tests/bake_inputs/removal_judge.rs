//! Compares each path of a tree without packages with what `dpkg --purge` leaves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::judge::{OWN, as_root, assert_is_dpkgs, dpkg, tree_of, write};
use super::parts::{bake_onto, base_with, control, deb, dir, file, member};
use crate::tools::have;

const REMOVED: [&str; 7] = ["conf", "depender", "files", "gone", "multi", "owner", "watched"];

/// All that a removal may meet: names and packages, in the order of their installation.
fn packages() -> Vec<(&'static str, Vec<u8>)> {
    let part = |name: &'static str, fields: &str, info: &[(&str, &str)], data: &[Vec<u8>]| {
        let parents = [dir("./"), dir("./usr/"), dir("./usr/share/"), dir("./etc/")].concat();
        (name, deb(&control(name, fields), info, &[vec![parents], data.to_vec()].concat()))
    };
    let conf = |names: &[&str]| -> Vec<Vec<u8>> {
        let files = names.iter().map(|name| file(&format!("./etc/conf/{name}"), "1\n"));
        [dir("./etc/conf/"), dir("./etc/conf/deep/"), dir("./etc/conf/deep/er/")].into_iter().chain(files).collect()
    };
    let names = ["same", "edited", "deleted", "linked", "replaced", "deep/x", "deep/er/y"];
    let conffiles: String = names.iter().map(|name| format!("/etc/conf/{name}\n")).collect();
    let at = |name: &str| format!("./usr/share/files/{name}");
    let files = [
        dir(&at("")),
        dir(&at("empty/")),
        dir(&at("own/")),
        dir(&at("shared/")),
        dir(&at("elsewhere/")),
        file(&at("first"), "1\n"),
        member(b'1', at("second").as_bytes(), at("first").as_bytes(), b""),
        member(b'2', at("link").as_bytes(), b"first", b""),
        member(b'2', at("to-directory").as_bytes(), b"own", b""),
        file(&at("own/x"), "1\n"),
        file(&at("shared/x"), "1\n"),
        file(&at("elsewhere/x"), "1\n"),
        file(&at("missing"), "1\n"),
        file(&at("diverted"), "files\n"),
        dir("./opt/"),
        dir("./opt/files/"),
    ];
    let shared = [dir(&at("")), dir(&at("shared/"))];
    vec![
        part("conf", "", &[("conffiles", &conffiles)], &conf(&names)),
        part("files", "", &[("triggers", "activate named\n")], &files),
        part("depender", "Depends: files\n", &[], &[file("./usr/share/depender", "1\n")]),
        part("gone", "", &[("conffiles", "/etc/gone.conf\n")], &[file("./etc/gone.conf", "1\n")]),
        part("multi", "Multi-Arch: same\n", &[], &[file("./usr/share/multi", "1\n")]),
        part("owner", "", &[], &[dir(&at("")), file(&at("diverted"), "owner\n")]),
        part("stays", "", &[("triggers", "interest-noawait /usr/share/files\n")], &shared),
        part(
            "watched",
            "",
            &[("triggers", "interest-noawait /usr/share/none\ninterest named\ninterest other\n")],
            &[file("./usr/share/watched", "1\n")],
        ),
    ]
}

/// Manual changes to a base after the packages were installed.
fn lived_with(root: &Path) {
    let at = |path: &str| root.join(path);
    let conf = [
        "edited",
        "same.dpkg-old",
        "same.dpkg-dist",
        "same~",
        "same.bak",
        "same.~12~",
        "same~3~",
        "#same#",
        "same.orig",
        "deleted.dpkg-new",
        "deep/x.ucf-dist",
    ];
    for name in conf {
        fs::write(at("etc/conf").join(name), "mine\n").unwrap();
    }
    fs::remove_file(at("etc/conf/deleted")).unwrap();
    fs::remove_file(at("etc/conf/linked")).unwrap();
    fs::remove_file(at("etc/conf/replaced")).unwrap();
    fs::create_dir(at("etc/conf/replaced")).unwrap();
    fs::create_dir_all(at("srv")).unwrap();
    fs::write(at("srv/linked"), "1\n").unwrap();
    fs::write(at("srv/linked.dpkg-old"), "1\n").unwrap();
    symlink("../../srv/linked", at("etc/conf/linked")).unwrap();
    fs::write(at("usr/share/files/own/mine"), "mine\n").unwrap();
    fs::write(at("usr/share/files/first.dpkg-new"), "mine\n").unwrap();
    fs::remove_file(at("usr/share/files/missing")).unwrap();
    fs::rename(at("usr/share/files/elsewhere"), at("srv/elsewhere")).unwrap();
    symlink("../../../srv/elsewhere", at("usr/share/files/elsewhere")).unwrap();
}

fn run(prefix: &[&str], root: &Path, args: &[&str]) {
    let words: Vec<&str> = prefix.iter().copied().chain(["dpkg"]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(format!("--root={}", root.display()));
    let output = command.args(["--force-bad-path", "--force-unsafe-io"]).args(args).env("LC_ALL", "C").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn dpkg_removes_in_the_same_way() {
    let dir = tempfile::tempdir().unwrap();
    let Some(prefix) = as_root(dir.path()).filter(|_| have(&["dpkg", "dpkg-deb"])) else {
        return crate::tools::skip::skip("needs root, or a user namespace, and dpkg");
    };
    let root = dir.path().join("root");
    let files = [
        ("/var/lib/dpkg/arch", "amd64\n"),
        ("/var/lib/dpkg/status", ""),
        ("/var/lib/dpkg/diversions", "/usr/share/files/diverted\n/usr/share/files/diverted.real\nowner\n"),
        ("/var/log/dpkg.log", ""),
    ];
    write(&base_with(&files), &root);
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
    for (name, bytes) in packages() {
        dpkg(&prefix, &root, name, &bytes);
    }
    lived_with(&root);
    run(&prefix, &root, &["--remove", "gone"]);
    let base = tree_of(&root);
    run(&prefix, &root, &[&["--purge"], &REMOVED[..]].concat());
    let tree = bake_onto(base, &[], &format!(r#", "remove_packages": {REMOVED:?}"#)).unwrap();
    assert_is_dpkgs(&root, &tree, &OWN);
}
