//! A small signed release, and the output of `vmbake verify image`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use vmbake_bake::BakeRequest;
use vmbake_common::digest::Digest;
use vmbake_disk::image::Format;
use vmbake_disk::source::FileSource;
use vmbake_disk::write::fsverity;

use crate::origin::bakery::{bake, base_of, request};

pub const NAME: &str = "tools.o.amd64";

/// Runs vmbake, with no password in its environment.
pub fn vmbake(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(args).env_remove("COSIGN_PASSWORD").env_remove("SOURCE_DATE_EPOCH");
    command.envs(variables.iter().copied()).output().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Two keys, and a release that the first one has signed.
pub struct Lab {
    pub dir: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let request = both(dir.path(), "signed");
        bake(&request).unwrap();
        let lab = Self { dir };
        for key in ["one", "two"] {
            let made = vmbake(&["key", "generate", "--out", text(&lab.path(key))], &[]);
            assert!(made.status.success(), "{}", stderr(&made));
        }
        lab.sign(&lab.path("signed"), "one", &[]);
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn sign(&self, out: &Path, key: &str, more: &[&str]) {
        let key = self.path(&format!("{key}.key"));
        let signed = vmbake(&[&["sign", text(out), "--key", text(&key)], more].concat(), &[]);
        assert!(signed.status.success(), "{}", stderr(&signed));
    }

    /// A copy of the release that can be changed.
    pub fn copy(&self, name: &str) -> PathBuf {
        let copy = self.path(name);
        fs::create_dir(&copy).unwrap();
        let status = Command::new("cp").args(["--sparse=always", "-r"]).arg(self.path("signed/.")).arg(&copy).status();
        assert!(status.unwrap().success());
        copy
    }

    /// What is said of a release: the exit code and each check as `state check file: said`, without those that are ok.
    pub fn verify(&self, release: &Path, more: &[&str]) -> (i32, Vec<String>) {
        let (store, sources) = (self.path("store"), self.path("sources.json"));
        let args = ["verify", "image", text(release), "--json", "--no-builtin=sources", "--sources", text(&sources)];
        let store: &[&str] = if more.contains(&"--store") { &[] } else { &["--store", text(&store)] };
        let output = vmbake(&[&args, store, more].concat(), &[]);
        let said = |check: &Value| {
            let part = |key: &str| check[key].as_str().unwrap().to_owned();
            format!("{} {} {}: {}", part("state"), part("check"), part("file"), part("said"))
        };
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        let checks: Vec<String> = report["checks"].as_array().unwrap().iter().map(said).collect();
        assert!(checks.len() > 3, "{checks:?}");
        let code = output.status.code().unwrap();
        assert_eq!(report["ok"].as_bool().unwrap(), code == 0, "{checks:?}");
        (code, checks.into_iter().filter(|check| !check.starts_with("ok ")).collect())
    }

    /// The arguments by which the first key must have signed.
    pub fn key(&self) -> [String; 2] {
        ["--key".to_owned(), text(&self.path("one.pub")).to_owned()]
    }
}

/// A bake of both formats into `dir/out`.
pub fn both(dir: &Path, out: &str) -> BakeRequest {
    let base = match dir.join("base.raw") {
        base if base.exists() => base,
        _ => base_of(dir),
    };
    BakeRequest { formats: vec![Format::Raw.into(), Format::Qcow2.into()], ..request(dir, base, out, 2) }
}

/// Updates the checksum lists for a modified file, as an attacker with write access would.
pub fn relist(out: &Path, file: &str) {
    let path = out.join(file);
    let (list, before, hex, between) = match file.ends_with(".raw") {
        true => {
            let source = FileSource::new(fs::File::open(&path).unwrap()).unwrap();
            let digest = fsverity(&source, std::num::NonZeroUsize::MIN).unwrap();
            ("FSVERITYSUMS", "sha256:", Digest::Sha256(digest).hex(), " ")
        }
        false => ("SHA256SUMS", "", Digest::of(&fs::read(&path).unwrap()).hex(), "  "),
    };
    let old = fs::read_to_string(out.join(list)).unwrap();
    let end = format!("{between}{file}");
    let line = |line: &str| match line.ends_with(&end) {
        true => format!("{before}{hex}{end}\n"),
        false => format!("{line}\n"),
    };
    let new: String = old.lines().map(line).collect();
    assert_ne!(new, old, "{file}");
    fs::write(out.join(list), new).unwrap();
}

/// Changes the text of a file.
pub fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let old = fs::read_to_string(path).unwrap();
    let new = change(old.clone());
    assert_ne!(new, old, "{}", path.display());
    fs::write(path, new).unwrap();
}
