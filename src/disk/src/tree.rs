//! A file tree in memory: the contents of a file system, without its layout.
//!
//! Paths and names are bytes. Contents are references to ranges of sources ([`Map`]), never copies. Directories hold
//! their entries sorted by name, so a walk never depends on the order of insertion.

mod path;
mod checkpoint;
mod edit;

use std::collections::BTreeMap;

pub(crate) use path::show;
pub use path::{Arrival, Walk, components};

use crate::source::{Map, MapReader, Sources};
use checkpoint::Checkpoint;

/// Maximum number of symbolic links in one look-up, as `MAXSYMLINKS` of Linux.
pub(crate) const MAX_SYMLINKS: usize = 40;

/// Maximum number of names in the targets of these links together. Linux would follow 80,000, for each of a million
/// links of a hostile tree; regular trees have five each.
pub(crate) const MAX_LINK_NAMES: usize = 512;

/// Longest file name of Linux, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// Why a tree refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("{path}: invalid file name {name:?}")]
    InvalidName { path: String, name: String },
    #[error("{path}: no such file or directory")]
    NotFound { path: String },
    #[error("{path}: expected a directory, found {found}")]
    NotDirectory { path: String, found: &'static str },
    #[error("{path}: cannot replace a {found} with a {wanted}")]
    Occupied { path: String, found: &'static str, wanted: &'static str },
    #[error("{path}: more than {MAX_SYMLINKS} symbolic links")]
    SymlinkLoop { path: String },
    #[error("{path}: symbolic links with more than {MAX_LINK_NAMES} names")]
    LinkNames { path: String },
    #[error("{path}: expected a regular file, found a {found}")]
    NotFile { path: String, found: &'static str },
    #[error("{path}: {len} bytes, more than the limit of {limit}")]
    TooLarge { path: String, len: u64, limit: u64 },
    #[error("{path}: cannot read")]
    Read { path: String, source: std::io::Error },
}

/// Identifies an inode of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId(u32);

/// The root directory.
pub const ROOT: InodeId = InodeId(0);

/// Identifies an origin of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(u32);

/// The input that a node came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Layer, or `base` for the base image.
    pub layer: String,
    /// Artifact of the layer, if the node came from one.
    pub artifact: Option<String>,
    /// Digest of that artifact, as `sha256:<hex>`.
    pub digest: Option<String>,
}

/// A point in time: seconds since 1970-01-01 UTC, and nanoseconds below 1,000,000,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds, negative before 1970.
    pub secs: i64,
    /// Nanoseconds, always forward from `secs`.
    pub nanos: u32,
}

/// Owner, permission and time of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission bits, set-id and sticky bits: 0 to 0o7777.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    /// Last modification of the content.
    pub mtime: Timestamp,
    /// Extended attributes by full name (`security.capability`), values as `getxattr(2)` returns them.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Metadata {
    /// Metadata with root as the owner, without extended attributes.
    pub fn root(mode: u16, mtime: Timestamp) -> Self {
        Self { mode, mtime, ..Self::default() }
    }
}

/// The type and content of an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Entries by name.
    Directory(BTreeMap<Vec<u8>, InodeId>),
    File(Map),
    /// A symbolic link with its target.
    Symlink(Vec<u8>),
    /// A character device.
    CharDevice {
        major: u32,
        minor: u32,
    },
    BlockDevice {
        major: u32,
        minor: u32,
    },
    Fifo,
    /// A Unix socket.
    Socket,
}

impl Kind {
    /// Its name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Directory(_) => "directory",
            Self::File(_) => "regular file",
            Self::Symlink(_) => "symbolic link",
            Self::CharDevice { .. } => "character device",
            Self::BlockDevice { .. } => "block device",
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
        }
    }

    /// An empty directory.
    pub fn directory() -> Self {
        Self::Directory(BTreeMap::new())
    }
}

/// An inode; several names may refer to it if it is not a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    pub meta: Metadata,
    /// Type and content.
    pub kind: Kind,
    pub origin: OriginId,
}

/// A file tree with the sources that its contents refer to.
#[derive(Clone, Debug)]
pub struct Tree {
    inodes: Vec<Inode>,
    origins: Vec<Origin>,
    sources: Sources,
    checkpoint: Option<Checkpoint>,
}

impl Tree {
    /// A tree with an empty root directory.
    pub fn new(root: Metadata, origin: Origin) -> Self {
        let root = Inode { meta: root, kind: Kind::directory(), origin: OriginId(0) };
        Self { inodes: vec![root], origins: vec![origin], sources: Sources::default(), checkpoint: None }
    }

    /// The inode with that ID. Panics on an ID of another tree, which is a programming error.
    pub fn inode(&self, id: InodeId) -> &Inode {
        &self.inodes[id.0 as usize]
    }

    /// A unique number of the inode in this tree.
    pub fn number(&self, id: InodeId) -> u64 {
        id.0.into()
    }

    /// The inode with that ID, to change its metadata. Entries of directories are changed by `insert`, `link`,
    /// `remove`.
    pub fn meta_mut(&mut self, id: InodeId) -> &mut Metadata {
        &mut self.inode_mut(id).meta
    }

    /// Sets the origin of an inode.
    pub fn set_origin(&mut self, id: InodeId, origin: OriginId) {
        self.inode_mut(id).origin = origin;
    }

    /// Adds an origin.
    pub fn add_origin(&mut self, origin: Origin) -> OriginId {
        self.origins.push(origin);
        OriginId(u32::try_from(self.origins.len() - 1).unwrap_or(u32::MAX))
    }

    /// The origin with that ID.
    pub fn origin(&self, id: OriginId) -> &Origin {
        &self.origins[id.0 as usize]
    }

    /// The origin that the tree was created with: the base's.
    pub fn first_origin(&self) -> OriginId {
        OriginId(0)
    }

    /// The sources of all contents.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The sources of all contents, to add one.
    pub fn sources_mut(&mut self) -> &mut Sources {
        &mut self.sources
    }

    /// Every name of the tree, the root first, each directory before its entries, entries sorted by bytes.
    pub fn walk(&self) -> Walk<'_> {
        Walk::from(self, ROOT)
    }

    /// Every name below `start`, as [`Tree::walk`], with relative paths.
    pub fn walk_from(&self, start: InodeId) -> Walk<'_> {
        Walk::from(self, start)
    }

    /// The content of the regular file at `path` (symbolic links are followed inside the tree), if it has at most
    /// `limit` bytes.
    pub fn read(&self, path: &[u8], limit: u64) -> Result<Vec<u8>, TreeError> {
        let shown = path::show(path);
        let inode = self.inode(self.resolve(path)?);
        let Kind::File(map) = &inode.kind else {
            return Err(TreeError::NotFile { path: shown, found: inode.kind.name() });
        };
        if map.len() > limit {
            return Err(TreeError::TooLarge { path: shown, len: map.len(), limit });
        }
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut MapReader::new(map, &self.sources), &mut content)
            .map_err(|source| TreeError::Read { path: shown, source })?;
        Ok(content)
    }
}

/// Permissions as `ls -l` shows them: `rwxr-xr-x`.
pub fn permissions(mode: u16) -> String {
    let mut text = String::new();
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

#[cfg(test)]
mod tests;
