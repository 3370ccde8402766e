//! A small system with accounts, on which commands run. The expected results are those of the real commands of Debian 13.

use vmbake_disk::tree::Tree;

use crate::bake_inputs::parts::{bake_onto, base_with, control, deb, package, text};

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\ngames:x:5:60::/usr/games:/usr/sbin/nologin\n\
    client:x:100:65534::/:/bin/false\nbus:x:988:988::/:/usr/sbin/nologin\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nadm:x:4:\ngames:x:60:\nusers:x:100:\nkeys:x:101:\nbus:x:988:\njournal:x:999:\n\
    nogroup:x:65534:\n";
const LOGIN_DEFS: &str = "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUSERGROUPS_ENAB yes\n\
    HOME_MODE 0700\nPASS_MAX_DAYS\t99999\nPASS_MIN_DAYS 0\nPASS_WARN_AGE 7\n";

/// A base with a few accounts, and with these files.
pub fn system(files: &[(&str, &str)]) -> Tree {
    let lines = |text: &str, rest: &str| -> String {
        text.lines().map(|line| format!("{}:{rest}\n", line.split(':').next().unwrap())).collect()
    };
    let (shadow, gshadow) = (lines(PASSWD, "*:19000:0:99999:7:::"), lines(GROUP, "*::"));
    let mut all = vec![
        ("/etc/passwd", PASSWD),
        ("/etc/group", GROUP),
        ("/etc/shadow", &shadow),
        ("/etc/gshadow", &gshadow),
        ("/etc/subuid", ""),
        ("/etc/subgid", ""),
        ("/etc/login.defs", LOGIN_DEFS),
        ("/etc/skel/.profile", "profile\n"),
    ];
    all.extend_from_slice(files);
    base_with(&all)
}

/// Runs the lines as the postinst of a package.
pub fn run(base: Tree, lines: &str) -> Result<Tree, String> {
    let script = format!("#!/bin/sh\n{lines}\n");
    bake_onto(base, &[package("own", deb(&control("own", ""), &[("postinst", &script)], &[]))], "")
}

/// Runs each command, and gives the tree with `STATUS<TAB>COMMAND` of each and with what they print.
pub fn run_all<'a>(base: Tree, commands: impl Iterator<Item = &'a str>) -> (Tree, String, String) {
    let commands: Vec<&str> = commands.collect();
    let lines: Vec<String> =
        commands.iter().map(|command| format!("{command} >>/output 2>/dev/null; echo \"$?\" >>/statuses")).collect();
    let tree = run(base, &lines.join("\n")).unwrap();
    let statuses = text(&tree, "/statuses");
    let statuses = statuses.lines().zip(commands).map(|(status, command)| format!("{status}\t{command}\n")).collect();
    let output = text(&tree, "/output");
    (tree, statuses, output)
}
