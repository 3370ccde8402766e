//! The result of a run: status, output and files.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use vmbake_disk::tree::{Kind, Tree};

/// What can be compared. Standard error is not a part of it: its wording is not an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub status: u8,
    pub stdout: Vec<u8>,
    /// Every path with its type, mode, owner, content or target, and the first path of the same inode.
    pub tree: BTreeMap<String, String>,
}

/// Which parts of two results differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parts {
    pub status: bool,
    pub stdout: bool,
    pub tree: bool,
}

impl Left {
    pub fn compare(&self, other: &Self) -> Parts {
        Parts {
            status: self.status != other.status,
            stdout: self.stdout != other.stdout,
            tree: self.tree != other.tree,
        }
    }

    /// Text for a report: what of `self` is not in `other`.
    pub fn describe(&self, other: &Self) -> String {
        let mut text = format!("status {}, stdout \"{}\"", self.status, self.stdout.escape_ascii());
        for (path, entry) in &self.tree {
            if other.tree.get(path) != Some(entry) {
                text.push_str(&format!("\n    {path}: {entry}"));
            }
        }
        for path in other.tree.keys().filter(|path| !self.tree.contains_key(*path)) {
            text.push_str(&format!("\n    {path}: missing"));
        }
        text
    }
}

fn entry(kind: &str, mode: u32, owner: (u32, u32), content: &[u8]) -> String {
    format!("{kind} {mode:o} {}:{} \"{}\"", owner.0, owner.1, content.escape_ascii())
}

fn same_file(text: &mut String, first: &str) {
    text.push_str(&format!(" = {first}"));
}

/// The files below a directory of the host. Owners are those of root where the user is not root.
pub fn of_host(root: &Path, as_root: bool) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut inodes = HashMap::new();
    collect(root, "", as_root, &mut inodes, &mut found);
    found
}

fn collect(
    directory: &Path,
    prefix: &str,
    as_root: bool,
    inodes: &mut HashMap<u64, String>,
    found: &mut BTreeMap<String, String>,
) {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let file_type = meta.file_type();
        let name = format!("{prefix}{}", path.file_name().unwrap().as_encoded_bytes().escape_ascii());
        if !as_root && !meta.is_symlink() {
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
        }
        let (kind, mode, content) = if meta.is_dir() {
            ("directory", mode, Vec::new())
        } else if meta.is_symlink() {
            ("link", 0o777, fs::read_link(&path).unwrap().into_os_string().into_vec())
        } else if file_type.is_fifo() {
            ("fifo", mode, Vec::new())
        } else {
            ("file", mode, fs::read(&path).unwrap_or_default())
        };
        let owner = if as_root { (meta.uid(), meta.gid()) } else { (0, 0) };
        let mut text = entry(kind, mode, owner, &content);
        if !meta.is_dir() && meta.nlink() > 1 {
            match inodes.get(&meta.ino()) {
                Some(first) => same_file(&mut text, first),
                None => drop(inodes.insert(meta.ino(), name.clone())),
            }
        }
        found.insert(name.clone(), text);
        if meta.is_dir() {
            collect(&path, &format!("{name}/"), as_root, inodes, found);
        }
    }
}

/// The files below a directory of a tree.
pub fn of_tree(tree: &Tree, root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut inodes: BTreeMap<u64, String> = BTreeMap::new();
    let Ok(top) = tree.resolve(root.as_bytes()) else { return found };
    for (path, id, inode) in tree.walk_from(top).skip(1) {
        let (kind, mode, content) = match &inode.kind {
            Kind::Directory(_) => ("directory", inode.meta.mode, Vec::new()),
            Kind::Symlink(target) => ("link", 0o777, target.clone()),
            Kind::File(_) => {
                let full = [root.as_bytes(), &path[..]].concat();
                ("file", inode.meta.mode, tree.read(&full, 16 << 20).unwrap())
            }
            Kind::Fifo => ("fifo", inode.meta.mode, Vec::new()),
            other => (other.name(), inode.meta.mode, Vec::new()),
        };
        let name = path[1..].split(|byte| *byte == b'/').map(|part| part.escape_ascii().to_string());
        let name = name.collect::<Vec<_>>().join("/");
        let mut text = entry(kind, mode.into(), (inode.meta.uid, inode.meta.gid), &content);
        if kind != "directory" {
            match inodes.get(&tree.number(id)) {
                Some(first) => same_file(&mut text, first),
                None => drop(inodes.insert(tree.number(id), name.clone())),
            }
        }
        found.insert(name, text);
    }
    found
}
