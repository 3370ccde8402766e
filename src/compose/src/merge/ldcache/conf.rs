//! The directories that ldconfig scans: those in `/etc/ld.so.conf` and the files that it includes, in this order, then the system's. A
//! directory that is listed twice, also by another path, counts once; its subdirectories below `glibc-hwcaps` follow it directly.

use std::collections::BTreeSet;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::{InodeId, Kind, Tree, TreeError};
use vmbake_shell::fnmatch;

use super::{LibraryFault, MergeError};

const CONF: &[u8] = b"/etc/ld.so.conf";

/// Longest configuration file, in bytes.
const MAX_CONF: u64 = 1 << 20;

/// How deep configuration files may include each other: one that includes itself never ends.
const MAX_DEPTH: usize = 16;

/// Most configuration files, each counted as often as it is included: files that include each other multiply.
const MAX_FILES: usize = 1000;

/// Most paths that fit the start of a pattern: `/*/../*/..` multiplies them.
const MAX_PATHS: usize = 10_000;

/// A directory to scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// As the configuration names it, without a slash at its end.
    pub(super) path: Vec<u8>,
    /// Which it is.
    pub(super) id: InodeId,
    /// The name of a subdirectory of `glibc-hwcaps`.
    pub(super) hwcaps: Option<Vec<u8>>,
}

/// The directories that every loader of Debian searches, in its order.
pub(in crate::merge) fn system_directories(arch: &str) -> Vec<String> {
    let triplet = match arch {
        "amd64" => "x86_64-linux-gnu",
        "arm64" => "aarch64-linux-gnu",
        _ => return vec!["/lib".to_owned(), "/usr/lib".to_owned()],
    };
    vec![format!("/lib/{triplet}"), format!("/usr/lib/{triplet}"), "/lib".to_owned(), "/usr/lib".to_owned()]
}

/// All directories, in the order in which they are scanned.
pub(super) fn directories(tree: &Tree, arch: &str) -> Result<Vec<Directory>, MergeError> {
    let mut conf = Conf { tree, seen: BTreeSet::new(), found: Vec::new(), files: 0 };
    conf.file(CONF, MAX_DEPTH)?;
    for path in system_directories(arch) {
        conf.directory(path.as_bytes());
    }
    Ok(conf.found)
}

struct Conf<'a> {
    tree: &'a Tree,
    seen: BTreeSet<InodeId>,
    found: Vec<Directory>,
    /// Configuration files that were read.
    files: usize,
}

impl Conf<'_> {
    /// Reads a configuration file, if it is there.
    fn file(&mut self, path: &[u8], depth: usize) -> Result<(), MergeError> {
        let refused = |fault: LibraryFault| MergeError::content(String::from_utf8_lossy(path), fault);
        let content = match self.tree.read(path, MAX_CONF) {
            Ok(content) => content,
            Err(TreeError::NotFound { .. }) => return Ok(()),
            Err(error) => {
                return Err(refused(LibraryFault::Message(message!(
                    "is not a valid configuration of ldconfig: {error}"
                ))));
            }
        };
        self.files += 1;
        let depth = depth.checked_sub(1).filter(|_| self.files <= MAX_FILES);
        let depth =
            depth.ok_or_else(|| refused(LibraryFault::Message(Message::new("has too many levels of includes"))))?;
        for line in content.split(|byte| *byte == b'\n') {
            let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
            let (word, rest) = line.split_at(line.iter().position(|byte| is_blank(*byte)).unwrap_or(line.len()));
            if word == b"include" && !rest.is_empty() {
                for pattern in rest.split(|byte| is_blank(*byte)).filter(|pattern| !pattern.is_empty()) {
                    let above = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                    let relative = [&path[..above], b"/", pattern].concat();
                    let pattern = if pattern.starts_with(b"/") { pattern } else { &relative };
                    for file in self.glob(pattern).map_err(refused)? {
                        self.file(&file, depth)?;
                    }
                }
            } else if !word.eq_ignore_ascii_case(b"hwcap") || rest.is_empty() {
                self.directory(line);
            }
        }
        Ok(())
    }

    /// Adds a directory, unless it is there already or does not exist.
    fn directory(&mut self, line: &[u8]) {
        let end = line.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let path = &line[..end];
        let Some((id, _)) = self.entries(path).filter(|_| !path.is_empty()) else { return };
        if !self.seen.insert(id) {
            return;
        }
        self.found.push(Directory { path: path.to_vec(), id, hwcaps: None });
        let above = [path, b"/glibc-hwcaps"].concat();
        let Some((_, names)) = self.entries(&above) else { return };
        for name in names.into_iter().filter(|name| !name.starts_with(b".") && !name.contains(&b':')) {
            let path = [&above, &b"/"[..], &name].concat();
            if let Some((id, _)) = self.entries(&path).filter(|(id, _)| self.seen.insert(*id)) {
                self.found.push(Directory { path, id, hwcaps: Some(name) });
            }
        }
    }

    /// A directory with its names, symbolic links followed.
    fn entries(&self, path: &[u8]) -> Option<(InodeId, Vec<Vec<u8>>)> {
        let id = self.tree.resolve(path).ok()?;
        match &self.tree.inode(id).kind {
            Kind::Directory(entries) => Some((id, entries.keys().cloned().collect())),
            _ => None,
        }
    }

    /// The paths that fit a pattern as of glob(7), sorted by bytes.
    fn glob(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>, LibraryFault> {
        if pattern.contains(&b'[') || pattern.contains(&b'\\') {
            return Err(LibraryFault::Message(message!(
                "includes {:?}: patterns only support * and ?",
                String::from_utf8_lossy(pattern)
            )));
        }
        let mut paths = vec![Vec::new()];
        for part in vmbake_disk::tree::components(pattern) {
            let mut next = Vec::new();
            for path in paths {
                if !part.contains(&b'*') && !part.contains(&b'?') {
                    next.push([&path, &b"/"[..], part].concat());
                    continue;
                }
                let names = self.entries(&path).map(|(_, names)| names).unwrap_or_default();
                let hidden = |name: &[u8]| name.starts_with(b".") && !part.starts_with(b".");
                let names = names.into_iter().filter(|name| fnmatch(part, name) && !hidden(name));
                next.extend(names.map(|name| [&path, &b"/"[..], &name].concat()));
                if next.len() > MAX_PATHS {
                    return Err(LibraryFault::Message(message!(
                        "includes {:?}: matches too many paths",
                        String::from_utf8_lossy(pattern)
                    )));
                }
            }
            paths = next;
        }
        paths.sort();
        Ok(paths)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
