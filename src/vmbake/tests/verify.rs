//! `vmbake verify checksum` and `vmbake verify oci` with known results.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Exit code and what is on stderr.
fn verify(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_vmbake")).arg("verify").args(args).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The verdict must be the expected one, and a refusal must have its reason.
fn assert_verdict(name: &str, expected: &Value, (code, stderr): (Option<i32>, String)) {
    match expected.as_str().unwrap() {
        "pass" => assert_eq!(code, Some(0), "{name}: {stderr}"),
        _ => assert!(code == Some(1) && stderr.starts_with("error: "), "{name}: {code:?} {stderr}"),
    }
}

#[test]
fn checksum_files() {
    let dir = data("checksums");
    let cases = json(&dir.join("cases.json"));
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let (sums, artifact) = (dir.join(text("file")), dir.join(text("artifact")));
        let arguments = [
            "checksum",
            "--sums",
            sums.to_str().unwrap(),
            "--algorithm",
            text("algorithm"),
            artifact.to_str().unwrap(),
        ];
        assert_verdict(text("file"), &case["expect"], verify(&arguments));
    }
}

#[test]
fn oci_layouts() {
    let mut count = 0;
    for entry in std::fs::read_dir(data("oci")).unwrap() {
        let dir = entry.unwrap().path();
        let expected = json(&dir.join("expect.json"));
        let text = |key: &str| expected[key].as_str().unwrap();
        let arguments = ["oci", "--digest", text("pinned"), "--platform", text("platform"), dir.to_str().unwrap()];
        assert_verdict(dir.to_str().unwrap(), &expected["expect"], verify(&arguments));
        count += 1;
    }
    assert_eq!(count, 9);
}

#[test]
fn wrong_usage_is_told_apart_from_a_refusal() {
    for arguments in [
        vec!["checksum", "x"],
        vec!["checksum", "--sums", "x", "--algorithm", "md5", "y"],
        vec!["oci", "--digest", "sha256:00", "--platform", "linux/amd64", "x"],
        vec!["oci", "--platform", "linux", "x"],
    ] {
        assert_eq!(verify(&arguments).0, Some(2), "{arguments:?}");
    }
    assert_eq!(verify(&["checksum", "--sums", "/nonexistent", "/dev/null"]).0, Some(1));
}
