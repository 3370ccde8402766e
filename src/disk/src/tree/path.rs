//! Finds nodes: look-ups with and without symbolic links, and the walk over all names.

use super::{Inode, InodeId, Kind, MAX_LINK_NAMES, MAX_SYMLINKS, NAME_MAX, ROOT, Tree, TreeError};

/// The names of a path, without empty ones and `.`.
pub fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// A path for messages, with `\xNN` for bytes that are not valid UTF-8.
pub(crate) fn show(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// Names and nodes on a path from the root.
type Steps<'a> = Vec<(&'a [u8], InodeId)>;

/// A missing name, and whether it ends the path.
type Gap<'a> = (&'a [u8], bool);

/// The target of a path. Its paths have no links, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    Node {
        /// Its path, which is empty for the root.
        path: Vec<u8>,
        id: InodeId,
    },
    /// A name that does not exist in its directory.
    Missing {
        /// The path of that name.
        path: Vec<u8>,
        dir: InodeId,
        /// Whether only slashes follow the name.
        is_last: bool,
    },
}

impl Tree {
    /// The node at `path`, relative to the root. Follows no symbolic links, not even in the middle.
    pub fn lookup(&self, path: &[u8]) -> Option<InodeId> {
        components(path).try_fold(ROOT, |dir, name| self.entry(dir, name))
    }

    /// The entry `name` of directory `dir`.
    pub fn entry(&self, dir: InodeId, name: &[u8]) -> Option<InodeId> {
        match &self.inode(dir).kind {
            Kind::Directory(entries) => entries.get(name).copied(),
            _ => None,
        }
    }

    /// The node at `path` with symbolic links followed inside the tree: absolute targets and `..` are relative to its
    /// root, as with `chroot(2)`.
    pub fn resolve(&self, path: &[u8]) -> Result<InodeId, TreeError> {
        self.follow(path, true)?.ok_or_else(|| TreeError::NotFound { path: show(path) })
    }

    /// The directory of `path` with symbolic links followed, and its last name, which is not followed. `None` if `path`
    /// is the root or a directory is missing.
    pub fn locate<'a>(&self, path: &'a [u8]) -> Result<Option<(InodeId, &'a [u8])>, TreeError> {
        let Some(name) = components(path).next_back() else { return Ok(None) };
        let parent = parent_of(path);
        Ok(self.follow(parent, true)?.map(|dir| (dir, name)))
    }

    /// The node at `path` with symbolic links followed except for the last name; `None` if it does not exist.
    pub fn find(&self, path: &[u8]) -> Result<Option<InodeId>, TreeError> {
        self.follow(path, false)
    }

    /// The real path and node of `path` with symbolic links followed, including the last name if `last` is set; it has
    /// no links, `.` or `..`, and is empty for the root. `None` if it does not exist.
    pub fn real_path(&self, path: &[u8], last: bool) -> Result<Option<(Vec<u8>, InodeId)>, TreeError> {
        Ok(match self.arrive(path, last)? {
            Arrival::Node { path, id } => Some((path, id)),
            Arrival::Missing { .. } => None,
        })
    }

    /// Resolves `path` name by name as Linux does: before a slash, a `.` or a `..` there must be a directory, and a
    /// trailing slash follows a link. Only an empty path is the root here.
    pub fn arrive(&self, path: &[u8], last: bool) -> Result<Arrival, TreeError> {
        let (steps, gap) = self.steps(path, last)?;
        let mut real: Vec<u8> = steps.iter().flat_map(|(name, _)| [b"/", *name].concat()).collect();
        let id = end(&steps);
        Ok(match gap {
            None => Arrival::Node { path: real, id },
            Some((name, is_last)) => {
                real.push(b'/');
                real.extend_from_slice(name);
                Arrival::Missing { path: real, dir: id, is_last }
            }
        })
    }

    fn follow(&self, path: &[u8], last: bool) -> Result<Option<InodeId>, TreeError> {
        let (steps, gap) = self.steps(path, last)?;
        Ok(gap.is_none().then(|| end(&steps)))
    }

    /// The names and nodes from the root to the target of `path`, or to the directory of a missing name.
    fn steps<'a>(&'a self, path: &'a [u8], last: bool) -> Result<(Steps<'a>, Option<Gap<'a>>), TreeError> {
        let mut todo: Vec<&[u8]> = pieces(path).rev().collect();
        let mut to_directory = path.ends_with(b"/");
        let mut stack: Steps<'a> = Vec::new();
        let (mut links, mut names) = (0, 0);
        while let Some(name) = todo.pop() {
            let dir = self.directory(end(&stack), path)?;
            match name {
                b"." => continue,
                b".." => {
                    stack.pop();
                    continue;
                }
                name if name.len() > NAME_MAX => {
                    return Err(TreeError::InvalidName { path: show(path), name: show(name) });
                }
                _ => {}
            }
            let Some(id) = self.entry(dir, name) else { return Ok((stack, Some((name, todo.is_empty())))) };
            match &self.inode(id).kind {
                Kind::Symlink(target) if last || to_directory || !todo.is_empty() => {
                    links += 1;
                    names += pieces(target).count();
                    if links > MAX_SYMLINKS {
                        return Err(TreeError::SymlinkLoop { path: show(path) });
                    }
                    if names > MAX_LINK_NAMES {
                        return Err(TreeError::LinkNames { path: show(path) });
                    }
                    if target.starts_with(b"/") {
                        stack.clear();
                    }
                    to_directory |= todo.is_empty() && target.ends_with(b"/");
                    todo.extend(pieces(target).rev());
                }
                _ => stack.push((name, id)),
            }
        }
        if to_directory {
            self.directory(end(&stack), path)?;
        }
        Ok((stack, None))
    }

    /// A node that must be a directory.
    fn directory(&self, id: InodeId, path: &[u8]) -> Result<InodeId, TreeError> {
        match &self.inode(id).kind {
            Kind::Directory(_) => Ok(id),
            other => Err(TreeError::NotDirectory { path: show(path), found: other.name() }),
        }
    }
}

/// The node at the end of steps.
fn end(steps: &Steps<'_>) -> InodeId {
    steps.last().map_or(ROOT, |(_, id)| *id)
}

/// The parts between slashes, without empty ones.
fn pieces(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// Everything before the last name of a path.
pub(super) fn parent_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let start = path[..end].iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    &path[..start]
}

/// An iterator over all names of a tree; see [`Tree::walk`]. It holds one path and a position in each directory on it,
/// independent of the number of names.
#[derive(Debug)]
pub struct Walk<'a> {
    tree: &'a Tree,
    start: Option<InodeId>,
    path: Vec<u8>,
    /// The directories on the path: the length of each path, and its remaining entries.
    dirs: Vec<(usize, Entries<'a>)>,
}

type Entries<'a> = std::collections::btree_map::Iter<'a, Vec<u8>, InodeId>;

impl<'a> Walk<'a> {
    pub(super) fn from(tree: &'a Tree, start: InodeId) -> Self {
        Self { tree, start: Some(start), path: Vec::new(), dirs: Vec::new() }
    }

    /// The next name, whose path is then `self.path`.
    fn step(&mut self) -> Option<InodeId> {
        if let Some(start) = self.start.take() {
            return Some(start);
        }
        loop {
            let (len, entries) = self.dirs.last_mut()?;
            self.path.truncate(*len);
            if let Some((name, id)) = entries.next() {
                self.path.push(b'/');
                self.path.extend_from_slice(name);
                return Some(*id);
            }
            self.dirs.pop();
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    /// The absolute path (the root's is empty, all others start with a slash), the node's name and the node.
    type Item = (Vec<u8>, InodeId, &'a Inode);

    fn next(&mut self) -> Option<Self::Item> {
        let id = self.step()?;
        let inode = self.tree.inode(id);
        if let Kind::Directory(entries) = &inode.kind {
            self.dirs.push((self.path.len(), entries.iter()));
        }
        Some((self.path.clone(), id, inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_every_byte_of_a_path() {
        assert_eq!(show(b"/caf\xe9/\xc3\xa9\\"), "/caf\\xe9/\u{e9}\\");
    }
}
