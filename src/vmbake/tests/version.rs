//! `vmbake --version`.

use std::process::Command;

use serde_json::Value;
use vmbake_common::digest::Digest;
use vmbake_embedded::PROGRAMS;

use crate::origin::bakery::{baked, can_bake};

fn vmbake(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).args(args).output().unwrap()
}

#[test]
fn the_version_names_the_first_boot_programs_that_images_get() {
    assert_eq!(vmbake(&["-V"]).stdout, format!("vmbake {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
    let said: Value = serde_json::from_slice(&vmbake(&["--version", "--json"]).stdout).unwrap();
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["firstboot"].as_object().unwrap().len(), PROGRAMS.len());
    for (arch, _, bytes) in PROGRAMS {
        let program = &said["firstboot"][arch];
        assert_eq!(program["digest"], Digest::of(b"").of_stream(*bytes).unwrap().0.to_string(), "{arch}");
        assert_eq!(program["size"], bytes.len(), "{arch}");
    }
    for wrong in [&["--json"][..], &["--version", "bake", "node"], &["--json", "bake", "node"], &[]] {
        assert_eq!(vmbake(wrong).status.code(), Some(2), "{wrong:?}");
    }
    if can_bake() {
        let dir = tempfile::tempdir().unwrap();
        let (_, out) = baked(dir.path(), 1);
        let record = std::fs::read(out.join("tools.o.amd64.origin.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        assert_eq!(record["artifacts"]["firstboot"]["digest"], said["firstboot"]["amd64"]["digest"]);
    }
}
