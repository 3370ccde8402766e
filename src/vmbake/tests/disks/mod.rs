//! Queries on disks that were created by other tools.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::tools::have;

mod answers;
mod boot;
mod damaged;
mod queries;
mod tables;

/// Partitions of this length, from here on.
const MIB: usize = 1 << 20;
const PART: usize = 8 * MIB;

fn run(program: &str, args: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with images, in which the program runs.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An ext4 file system of a partition's length with these files.
    fn ext4(&self, label: &str, files: &[(&str, &str)]) -> Vec<u8> {
        let (tree, image) = (self.path("tree"), self.path("ext4"));
        fs::create_dir(&tree).unwrap();
        for (path, text) in files {
            let path = tree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (from, to) = (tree.to_str().unwrap(), image.to_str().unwrap());
        let options = ["-q", "-t", "ext4", "-b", "4096", "-O", "^has_journal", "-L", label, "-d", from, to, "8M"];
        run("mke2fs", &options);
        fs::remove_dir_all(tree).unwrap();
        let bytes = fs::read(&image).unwrap();
        fs::remove_file(image).unwrap();
        bytes
    }

    /// A root file system that is called like its label.
    fn system(&self, label: &str) -> Vec<u8> {
        self.ext4(label, &[("etc/os-release", &format!("PRETTY_NAME={label}\n")), ("etc/hostname", label)])
    }

    /// A file of `len` bytes that a tool has formatted.
    fn formatted(&self, tool: &str, args: &[&str], len: u64) -> Vec<u8> {
        let path = self.path("formatted");
        File::create(&path).unwrap().set_len(len).unwrap();
        run(tool, &[args, &[path.to_str().unwrap()]].concat());
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        bytes
    }

    /// A disk whose partitions have these types, as sgdisk calls them, and contents.
    fn gpt(&self, name: &str, parts: &[(&str, &[u8])]) -> PathBuf {
        let path = self.path(name);
        let longest = parts.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0).max(PART).next_multiple_of(MIB);
        File::create(&path).unwrap().set_len((longest * parts.len() + 2 * MIB) as u64).unwrap();
        let sectors = longest / 512;
        let mut args = Vec::new();
        for (index, (code, _)) in parts.iter().enumerate() {
            let (number, start) = (index + 1, 2048 + index * sectors);
            args.push(format!("--new={number}:{start}:{}", start + sectors - 1));
            args.push(format!("--typecode={number}:{code}"));
            args.push(format!("--change-name={number}:slot-{number}"));
        }
        args.push(path.display().to_string());
        run("sgdisk", &args.iter().map(String::as_str).collect::<Vec<_>>());
        for (index, (_, content)) in parts.iter().enumerate() {
            put(&path, MIB + index * longest, content);
        }
        path
    }

    fn vmbake(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_vmbake")).args(args).current_dir(self.0.path()).output().unwrap()
    }

    /// What a command that succeeds prints.
    fn says(&self, args: &[&str]) -> String {
        let output = self.vmbake(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(args)).unwrap()
    }

    /// The error of a command that fails, and its hint.
    fn refuses(&self, args: &[&str]) -> (String, String) {
        let output = self.vmbake(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]), "{args:?}: {said}");
        let line = |start: &str| said.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default().to_owned();
        (line("error: "), line("hint: "))
    }
}

fn put(path: &Path, at: usize, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at as u64).unwrap();
}
