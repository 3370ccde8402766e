//! A small release, its archive, and the archive's members.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use vmbake_bake::BakeRequest;
use vmbake_common::digest::Digest;

pub use crate::release::lab::{both, edit, stderr, text, vmbake};

/// A folder with a store, layers, sources, a manifest and a base: all that baking `tools` takes.
pub struct Lab {
    pub dir: tempfile::TempDir,
    pub request: BakeRequest,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let request = both(dir.path(), "baked");
        Self { dir, request }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same with a base that is too short to bake on.
    pub fn short() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base: Vec<u8> = (0..2_000_000_u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(dir.path().join("base.raw"), base).unwrap();
        let request = both(dir.path(), "baked");
        Self { dir, request }
    }

    /// Runs `vmbake archive` with `--no-builtin` and what the bake has.
    pub fn create(&self, what: &str, out: &str, more: &[&str]) -> Output {
        let [layers, sources, manifest, base, store, out] =
            ["layers", "sources.json", "manifest.json", "base.raw", "store", out].map(|name| self.path(name));
        let args =
            ["archive", "create", what, "--os", "o", "--no-builtin", "-o", text(&out), "--manifest", text(&manifest)];
        let paths =
            ["--layers", text(&layers), "--sources", text(&sources), "--base", text(&base), "--store", text(&store)];
        vmbake(&[&args[..], &paths, more].concat(), &[])
    }

    /// An archive of the inputs, which must be written.
    pub fn archive(&self, out: &str, more: &[&str]) -> PathBuf {
        let made = self.create("tools", out, more);
        assert!(made.status.success(), "{}", stderr(&made));
        self.path(out)
    }

    pub fn run(&self, command: &str, archive: &Path, more: &[&str]) -> Output {
        let args = ["archive", command, text(archive)];
        vmbake(&[&args, more].concat(), &[])
    }

    /// How many blobs a store has.
    pub fn blobs(&self, store: &str) -> usize {
        let folders = ["sha256", "sha512"].map(|name| self.path(store).join("blobs").join(name));
        folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).map(Iterator::count).sum()
    }
}

/// A member: its header and its content, with what fills its last block.
pub type Member = (Vec<u8>, Vec<u8>);

/// The members of an archive, as read by another tar implementation.
pub fn members(archive: &[u8]) -> Vec<Member> {
    let (mut members, mut at) = (Vec::new(), 0);
    while archive[at] != 0 {
        let header = tar::Header::from_byte_slice(&archive[at..at + 512]);
        let len = usize::try_from(header.entry_size().unwrap()).unwrap().next_multiple_of(512);
        members.push((archive[at..at + 512].to_vec(), archive[at + 512..at + 512 + len].to_vec()));
        at += 512 + len;
    }
    assert_eq!(archive.len(), at + 1024);
    members
}

pub fn name(member: &Member) -> String {
    tar::Header::from_byte_slice(&member.0).path().unwrap().to_str().unwrap().to_owned()
}

pub fn join(members: &[Member]) -> Vec<u8> {
    let mut bytes: Vec<u8> = members.iter().flat_map(|(header, content)| [&header[..], content].concat()).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// A member with a header that is right, but for what `change` does to it.
pub fn member(name: &str, content: &[u8], change: impl FnOnce(&mut tar::Header)) -> Member {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).unwrap();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    change(&mut header);
    header.set_cksum();
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(512), 0);
    (header.as_bytes().to_vec(), content)
}

/// An unexpected blob.
pub fn blob(content: &[u8]) -> Member {
    member(&format!("blobs/sha256/{}", Digest::of(content).hex()), content, |_| ())
}

/// Runs a script with vmbake as its first argument, in a folder.
pub fn shell(folder: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_vmbake")]).current_dir(folder);
    command.env_remove("SOURCE_DATE_EPOCH").output().unwrap()
}
