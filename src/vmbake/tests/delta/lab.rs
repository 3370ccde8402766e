//! Two small disks as raw and qcow2, two keys, and helpers for the two commands.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use vmbake_common::digest::Digest;
use vmbake_disk::disk::Disk;
use vmbake_disk::image::Format;
use vmbake_disk::source::{Map, Sources};
use vmbake_disk::write;

pub use crate::release::lab::{edit, stderr, text, vmbake};

pub const CLUSTER: usize = 64 << 10;

/// A folder with `old.raw`, `old.qcow2`, `new.raw`, `new.qcow2`, and the keys `one` and `two`.
pub struct Lab {
    pub dir: tempfile::TempDir,
    pub old: Vec<u8>,
    pub new: Vec<u8>,
}

/// Bytes that are the same for each seed, half of which compress.
pub fn bytes(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = |i: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (i / 4096).is_multiple_of(2) { state.to_be_bytes()[0] } else { b'a' }
    };
    let mut bytes: Vec<u8> = (0..len).map(&mut next).collect();
    // No disk begins as a text does.
    bytes[0] = 0;
    bytes
}

impl Lab {
    pub fn new() -> Self {
        let old = bytes(1, 20 * CLUSTER);
        let mut new = old.clone();
        new[CLUSTER + 5] ^= 1;
        new[4 * CLUSTER..6 * CLUSTER].fill(0);
        new.extend(bytes(2, CLUSTER + 512));
        Self::of(old, new)
    }

    pub fn of(old: Vec<u8>, new: Vec<u8>) -> Self {
        let lab = Self { dir: tempfile::tempdir().unwrap(), old, new };
        for (name, content) in [("old", &lab.old), ("new", &lab.new)] {
            for format in [Format::Raw, Format::Qcow2] {
                lab.store(content, format, &format!("{name}.{format}"));
            }
        }
        for key in ["one", "two"] {
            let made = vmbake(&["key", "generate", "--out", text(&lab.path(key))], &[]);
            assert!(made.status.success(), "{}", stderr(&made));
        }
        lab
    }

    pub fn store(&self, content: &[u8], format: Format, name: &str) -> PathBuf {
        let path = self.path(name);
        let mut sources = Sources::default();
        let id = sources.add(Arc::new(content.to_vec()));
        let disk = Disk::new(Map::whole(id, 0, content.len() as u64), sources);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        write::write(&disk, &[write::Output::new(format, &file)], NonZeroUsize::MIN, &|_| ()).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes the delta `out` of two files, which must work.
    pub fn delta(&self, old: &str, new: &str, out: &str, more: &[&str]) -> PathBuf {
        let [old, new, out, store] = [old, new, out, "store"].map(|name| self.path(name));
        let args = ["delta", text(&old), text(&new), "-o", text(&out), "--store", text(&store)];
        let made = vmbake(&[&args, more].concat(), &[]);
        assert!(made.status.success(), "{}", stderr(&made));
        out
    }

    /// A delta of the raw disks that the first key has signed.
    pub fn signed(&self, out: &str) -> PathBuf {
        self.delta("old.raw", "new.raw", out, &["--key", text(&self.path("one.key"))])
    }

    pub fn apply(&self, delta: &Path, base: &str, out: &str, more: &[&str]) -> Output {
        let [base, out] = [base, out].map(|name| self.path(name));
        vmbake(&[&["apply", text(delta), "--base", text(&base), "-o", text(&out)], more].concat(), &[])
    }

    /// Applies a delta that must be refused: nothing may be left, and that must be said.
    pub fn refused(&self, what: &str, delta: &Path, base: &str, more: &[&str], expected: &str) {
        let before = self.names();
        let output = self.apply(delta, base, "refused", more);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains(expected), "{what}: {said}");
        assert_eq!(self.names(), before, "{what}: something was left");
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Modifies a delta and its statement consistently, as an attacker without a key would.
    pub fn forge(&self, delta: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut content = fs::read(delta).unwrap();
        change(&mut content);
        fs::write(delta, &content).unwrap();
        self.restate(delta, |statement| {
            statement["delta"]["sha256"] = Digest::of(&content).to_string().into();
            statement["delta"]["length"] = content.len().into();
        });
    }

    /// Changes a statement.
    pub fn restate(&self, delta: &Path, change: impl FnOnce(&mut Value)) {
        edit(&statement_of(delta), |text| {
            let mut statement: Value = serde_json::from_str(&text).unwrap();
            change(&mut statement);
            serde_json::to_string_pretty(&statement).unwrap() + " \n"
        });
    }
}

/// The statement of a delta.
pub fn statement_of(delta: &Path) -> PathBuf {
    PathBuf::from(format!("{}.json", delta.display()))
}

/// Runs a tool that has to succeed, in a folder.
pub fn run_in(folder: &Path, tool: &str, args: &[&str]) {
    let output = Command::new(tool).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{tool} {args:?}: {}", stderr(&output));
}
