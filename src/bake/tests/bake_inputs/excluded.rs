//! Files that `path-exclude` in dpkg's configuration leaves out: the result is compared with that of dpkg.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::judge::{of_dir, of_tree, write};
use super::parts::{Part, bake_onto, base_with, control, deb, dir, file, member, package};
use crate::tools::have;

const CONFIG: &str = "/etc/dpkg/dpkg.cfg.d/docker";
const STATUS: &str = "Package: known\nStatus: install ok installed\nMaintainer: M <m@example.org>\nArchitecture: amd64\n\
    Version: 0.9\nDescription: o\n\n";
const LIST: &str = "/.\n/usr\n/usr/share\n/usr/share/doc\n/usr/share/doc/known\n/usr/share/doc/known/README\n";

fn parts(name: &'static str) -> Part {
    let folder = format!("./usr/share/doc/{name}");
    let data = [
        dir("./"),
        dir("./usr/"),
        dir("./usr/share/"),
        dir("./usr/share/doc/"),
        dir(&format!("{folder}/")),
        dir(&format!("{folder}/more/")),
        file(&format!("{folder}/README"), "new\n"),
        file(&format!("{folder}/copyright"), "c\n"),
        file(&format!("{folder}/more/x"), "x\n"),
        member(b'1', format!("{folder}/again").as_bytes(), format!("{folder}/README").as_bytes(), b""),
        member(b'2', format!("{folder}/link").as_bytes(), b"README", b""),
        dir("./usr/share/man/"),
        dir("./usr/share/man/man1/"),
        file(&format!("./usr/share/man/man1/{name}.1"), "m\n"),
        file(&format!("./usr/share/{name}"), "s\n"),
    ];
    package(name, deb(&control(name, ""), &[], &data))
}

#[test]
fn dpkg_leaves_out_the_same() {
    let dir = tempfile::tempdir().unwrap();
    if fs::metadata(dir.path()).unwrap().uid() != 0 || !have(&["dpkg", "dpkg-deb"]) {
        return crate::tools::skip::skip("needs root and dpkg");
    }
    for options in [
        &["path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright", "path-exclude=/usr/share/man/*"]
            [..],
        &["path-exclude=/usr/share/doc/*/[a-m]*", "path-exclude=*/man?/*"],
        &["path-exclude=/*", "path-include=/usr/share/?e*"],
        &["path-include=/usr/share/doc/known/*", "path-exclude=/usr/share/doc/known/*"],
    ] {
        let text = format!("# as in an image\nforce-unsafe-io\n{}\n", options.join("\n").replacen('=', " ", 1));
        let base = || {
            base_with(&[
                (CONFIG, &text),
                ("/etc/dpkg/dpkg.cfg.d/not.read", "path-exclude=*"),
                ("/var/lib/dpkg/status", STATUS),
                ("/var/lib/dpkg/info/format", "1\n"),
                ("/var/lib/dpkg/info/known.list", LIST),
                ("/var/lib/dpkg/info/known.md5sums", ""),
                ("/usr/share/doc/known/README", "old\n"),
            ])
        };
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        write(&base(), &root);
        fs::create_dir_all(root.join("var/lib/dpkg/updates")).unwrap();
        let parts = [parts("known"), parts("new")];
        for part in &parts {
            let path = dir.path().join(part.name);
            fs::write(&path, &part.bytes).unwrap();
            let mut command = Command::new("dpkg");
            command.arg(format!("--root={}", root.display())).args(["--force-bad-path", "--force-unsafe-io"]);
            command.args(options.iter().map(|option| format!("--{option}"))).arg("--install").arg(&path);
            let output = command.env("LC_ALL", "C").output().unwrap();
            assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let (mut expected, mut found) =
            (BTreeMap::new(), of_tree(&bake_onto(base(), &parts, r#", "upgrade": ["known"]"#).unwrap()));
        of_dir(&root, &root, &mut expected);
        let is_shared = |path: &String| path.starts_with("/usr/") || path.starts_with("/var/lib/dpkg/info/");
        expected.retain(|path, _| is_shared(path));
        found.retain(|path, _| is_shared(path));
        assert_eq!(expected, found, "{options:?}");
        fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
fn what_dpkg_would_not_leave_out_alone_is_refused() {
    for (exclude, expected) in [
        ("/etc/x.conf", "/etc/x.conf: `path-exclude` of dpkg's configuration excludes a conffile"),
        ("/opt/a", "/opt/b: `path-exclude` of dpkg's configuration excludes the file that this is a hard link to"),
        ("/opt/d", "/opt/d/x: `path-exclude` of dpkg's configuration excludes the directory of this file"),
        ("", "/etc/dpkg/dpkg.cfg.d/docker: line 1: the pattern is missing"),
        ("/[[:alpha:]]", "line 1: classes such as [:alpha:] are not supported"),
    ] {
        let data = [
            dir("./"),
            dir("./etc/"),
            file("./etc/x.conf", "c\n"),
            dir("./opt/"),
            file("./opt/a", "a\n"),
            member(b'1', b"./opt/b", b"./opt/a", b""),
            dir("./opt/d/"),
            file("./opt/d/x", "x\n"),
        ];
        let part = package("p", deb(&control("p", ""), &[("conffiles", "/etc/x.conf\n")], &data));
        let base = base_with(&[(CONFIG, &format!("path-exclude={exclude}\n"))]);
        let error = bake_onto(base, &[part], "").map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
