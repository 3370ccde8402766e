//! Rebuilding a release: proof that its bytes follow from its inputs, and failures.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use vmbake_common::digest::Digest;

use super::lab::{NAME, both, relist, stderr, text};
use crate::origin::bakery::{TOOL, can_bake};
use crate::program::write_program;

/// A release that the program has baked.
pub struct Baked {
    dir: tempfile::TempDir,
}

impl Baked {
    fn new() -> Self {
        let baked = Self::inputs();
        let done = baked.bake(&[]);
        assert!(done.status.success(), "{}", stderr(&done));
        baked
    }

    /// Manifest, sources, layers, store and base.
    pub fn inputs() -> Self {
        let dir = tempfile::tempdir().unwrap();
        both(dir.path(), "out");
        Self { dir }
    }

    /// Bakes to `out`.
    pub fn bake(&self, more: &[&str]) -> Output {
        let (manifest, out) = (self.path("manifest.json"), self.path("out"));
        let args = ["bake", "tools", "--os", "o", "--offline", "--manifest", text(&manifest), "--out", text(&out)];
        self.run(Path::new(env!("CARGO_BIN_EXE_vmbake")), &[&args, more].concat(), "layers")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn run(&self, vmbake: &Path, args: &[&str], layers: &str) -> Output {
        let mut command = Command::new(vmbake);
        command.args(args).args(["--no-builtin", "--base"]).arg(self.path("base.raw"));
        for (option, name) in [("--layers", layers), ("--store", "store"), ("--sources", "sources.json")] {
            command.arg(option).arg(self.path(name));
        }
        let trust = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../trust");
        command.arg("--trust").arg(trust).env_remove("SOURCE_DATE_EPOCH").output().unwrap()
    }

    /// What is said of baking it again: exit code, the checks as `state file: said`, and how the files differ.
    pub fn again(&self, vmbake: &Path, layers: &str) -> (i32, Vec<String>, String) {
        let out = self.path("out");
        let output = self.run(vmbake, &["verify", "image", text(&out), "--json", "--rebuild"], layers);
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        let part = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
        let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "rebuild");
        let said = checks.map(|one| format!("{} {}: {}", part(one, "state"), part(one, "file"), part(one, "said")));
        (output.status.code().unwrap(), said.collect(), part(&report, "differences"))
    }
}

#[test]
fn a_release_is_baked_again_to_the_same_bytes() {
    if !can_bake() {
        return;
    }
    let baked = Baked::new();
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let (code, said, differences) = baked.again(vmbake, "layers");
    assert_eq!((code, differences.as_str()), (0, ""), "{said:?}");
    for end in ["inputs.json", "json", "origin.json", "qcow2", "raw"] {
        assert!(said.contains(&format!("ok {NAME}.{end}: identical")), "{end}: {said:?}");
    }

    let copied = Command::new("cp").arg("-r").args([baked.path("layers"), baked.path("other")]).status();
    assert!(copied.unwrap().success());
    fs::write(baked.path("other/tools/files/etc/tool.conf"), "tool = 2\n").unwrap();
    let (code, said, _) = baked.again(vmbake, "other");
    assert_eq!((code, said.len()), (1, 1), "{said:?}");
    assert!(said[0].starts_with(&format!("failed {NAME}.inputs.json: /layers/tools/digest is \"sha256:")), "{said:?}");
    assert!(said[0].contains("\", but \"sha256:") && said[0].ends_with("\" here"), "{said:?}");

    // The same program with a byte behind its end.
    let other = baked.path("vmbake");
    write_program(&other, &[&*fs::read(vmbake).unwrap(), b"x"].concat());
    let (code, said, _) = baked.again(&other, "layers");
    assert_eq!((code, said.len()), (1, 1), "{said:?}");
    assert!(
        said[0].contains("the image was baked by vmbake ") && said[0].contains(", but this is vmbake "),
        "{said:?}"
    );
}

/// A rebuilder can attest a release with a separate key and builder ID, and is trusted by those.
#[test]
fn a_rebuilder_signs_what_it_has_baked_again() {
    if !can_bake() {
        return;
    }
    let baked = Baked::new();
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let (out, key) = (baked.path("out"), baked.path("again"));
    let made = Command::new(vmbake).args(["key", "generate", "--out", text(&key)]).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let (private, public) = (baked.path("again.key"), baked.path("again.pub"));
    let verify = ["verify", "image", text(&out), "--json"];
    let sign = ["--rebuild", "--sign", text(&private), "--builder-id", "urn:again"];
    let bundles = |label: &str| {
        let stems = ["FSVERITYSUMS".to_owned(), "SHA256SUMS".to_owned(), format!("{NAME}.provenance")];
        stems.map(|stem| out.join(format!("{stem}.{label}.sigstore.json")))
    };
    // What is not the same is not signed.
    let raw = out.join(format!("{NAME}.raw"));
    let last = fs::metadata(&raw).unwrap().len() - 1;
    let file = fs::File::options().read(true).write(true).open(&raw).unwrap();
    file.write_all_at(b"x", last).unwrap();
    let refused = baked.run(vmbake, &[verify.as_slice(), &sign].concat(), "layers");
    assert_eq!(refused.status.code(), Some(1));
    assert!(bundles("rebuild").iter().all(|bundle| !bundle.exists()));
    file.write_all_at(b"\0", last).unwrap();

    let done = baked.run(vmbake, &[verify.as_slice(), &sign].concat(), "layers");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let signed: Vec<PathBuf> =
        report["signed"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect();
    assert_eq!(signed, bundles("rebuild"));
    let policy = baked.path("policy.json");
    fs::write(&policy, r#"{"format": 1, "builders": ["urn:vmbake:builder", "urn:again"]}"#).unwrap();
    let demand = ["--rebuild", "--key", text(&public), "--policy", text(&policy)];
    let done = baked.run(vmbake, &[verify.as_slice(), &demand].concat(), "layers");
    assert!(done.status.success(), "{}", stderr(&done));
    // Statements of an untrusted builder do not count.
    fs::write(&policy, r#"{"format": 1, "builders": ["urn:vmbake:builder"]}"#).unwrap();
    let done = baked.run(vmbake, &[verify.as_slice(), &demand].concat(), "layers");
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("builder urn:again is not listed in the policy"), "{said}");
}

#[test]
fn what_the_inputs_do_not_lead_to_is_named() {
    if !can_bake() {
        return;
    }
    let baked = Baked::new();
    let raw = baked.path("out").join(format!("{NAME}.raw"));
    let image = fs::read(&raw).unwrap();
    let at = image.windows(TOOL.len()).position(|part| part == TOOL).unwrap();
    fs::File::options().write(true).open(&raw).unwrap().write_all_at(b"#!/bin/sh\necho TOOL\n", at as u64).unwrap();
    relist(&baked.path("out"), &format!("{NAME}.raw"));
    let (code, said, differences) = baked.again(Path::new(env!("CARGO_BIN_EXE_vmbake")), "layers");
    assert_eq!(code, 1);
    let listed = format!("failed {NAME}.raw: listed with fsverity:sha256:");
    assert!(said.iter().any(|line| line.starts_with(&listed) && line.contains("the rebuild has")), "{said:?}");
    let same = said.iter().filter(|line| line.ends_with(": identical")).count();
    assert!(same >= 4 && same == said.len() - 1, "{said:?}");
    assert!(differences.contains("/tool") && differences.contains(&format!("{NAME}.raw: ")), "{differences}");
}

#[test]
fn garbage_collection_keeps_what_a_record_of_inputs_names() {
    if !can_bake() {
        return;
    }
    let baked = Baked::new();
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let (out, store) = (baked.path("out"), baked.path("store"));
    let base = Digest::of(b"a base that no manifest pins");
    fs::write(store.join("blobs/sha256").join(base.hex()), "a base that no manifest pins").unwrap();
    let collect = |what: &Path| {
        let gc = ["store", "gc", "--dry-run", "--store", text(&store), "--manifests", text(what)];
        let output = Command::new(vmbake).args(gc).output().unwrap();
        (output.status.success(), format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output)))
    };
    let blobs = |said: &str| said.lines().filter(|line| line.contains("/blobs/")).count();
    for kept in [out.clone(), out.join(format!("{NAME}.inputs.json")), baked.path("manifest.json")] {
        let (is_done, said) = collect(&kept);
        assert!(is_done && blobs(&said) == 1 && said.contains(&base.hex()), "{}: {said}", kept.display());
    }
    let inputs = fs::read(out.join(format!("{NAME}.inputs.json"))).unwrap();
    let mut inputs: Value = serde_json::from_slice(&inputs).unwrap();
    inputs["base"] = base.to_string().into();
    fs::write(baked.path("x.inputs.json"), inputs.to_string()).unwrap();
    fs::copy(baked.path("manifest.json"), baked.path("x.json")).unwrap();
    let (is_done, said) = collect(&baked.path("x.inputs.json"));
    assert!(is_done && blobs(&said) == 0, "{said}");
    fs::File::options().append(true).open(baked.path("x.json")).unwrap().write_all(b" ").unwrap();
    let (is_done, said) = collect(&baked.path("x.inputs.json"));
    assert!(!is_done && said.contains("x.json: has digest ") && said.contains(" records manifest "), "{said}");
}
