//! Packages whose postinst writes down what commands say.

use vmbake_disk::tree::Tree;

use crate::bake_inputs::parts::{bake_onto, control, deb, package, text};

/// Bakes a package `own` whose postinst is these lines onto a base.
pub fn postinst(base: Tree, lines: &str) -> Result<Tree, String> {
    let script = format!("#!/bin/sh\nset -e\n{lines}\n");
    bake_onto(base, &[package("own", deb(&control("own", ""), &[("postinst", &script)], &[]))], "")
}

/// What each of the commands writes to standard output, with its status where that is not 0.
pub fn said(base: Tree, commands: &[&str]) -> (Vec<String>, Tree) {
    let line = |command: &&str| format!("say {command}\n");
    let lines: String = commands.iter().map(line).collect();
    let say =
        "say() { s=0; \"$@\" >>/said 2>>/errors || s=$?; [ $s = 0 ] || echo \"=$s\" >>/said; echo -- >>/said; }\n";
    let tree = postinst(base, &format!("{say}{lines}")).unwrap();
    let mut said: Vec<String> = text(&tree, "/said").split("--\n").map(str::to_owned).collect();
    said.pop();
    assert_eq!(said.len(), commands.len());
    (said, tree)
}

/// Why a postinst of these lines stops the bake.
pub fn refusal(base: Tree, lines: &str) -> String {
    postinst(base, lines).unwrap_err()
}
