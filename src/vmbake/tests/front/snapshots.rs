//! Snapshots of command output in `snapshots/`. `INSTA_UPDATE=always cargo test` updates them.

use std::process::Command;

use crate::origin::bakery::{baked, can_bake};
use crate::origin::image::text;

fn vmbake(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vmbake")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    text(&output.stdout).to_owned()
}

/// Without lines that tell of this machine or of the first-boot program inside.
fn without(text: &str, lines: &[&str]) -> String {
    let mut found = 0;
    let text = text.lines().map(|line| match lines.iter().find(|start| line.trim_start().starts_with(**start)) {
        Some(start) => {
            found += 1;
            format!("{start} [...]\n")
        }
        None => format!("{line}\n"),
    });
    let text = text.collect();
    assert_eq!(found, lines.len(), "{text}");
    text
}

#[test]
fn help() {
    insta::assert_snapshot!(vmbake(&["--help"]));
}

#[test]
fn inspect() {
    if can_bake() {
        let dir = tempfile::tempdir().unwrap();
        let (_, out) = baked(dir.path(), 1);
        let said = vmbake(&["inspect", out.join("tools.o.amd64.raw").to_str().unwrap()]);
        insta::assert_snapshot!(without(&said, &["file size", "ext4,"]));
    }
}

#[test]
fn explain() {
    if can_bake() {
        let dir = tempfile::tempdir().unwrap();
        let (_, out) = baked(dir.path(), 1);
        insta::assert_snapshot!(vmbake(&["explain", out.join("tools.o.amd64.raw").to_str().unwrap(), "/bin/t"]));
    }
}
