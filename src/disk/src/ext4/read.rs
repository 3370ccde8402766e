//! Reads a volume to a tree: the metadata are read in sequential passes, then joined.

mod partial;

use std::sync::Arc;

use mkext4::spec::file_type;
use mkext4::spec::inode::FileType;

use super::blocks::{self, Content, Contents, Scope};
use super::corruption::{AttributeFault, DirectoryFault, InodeFault};
use super::directory::{Directory, Entry};
use super::error::REBUILD;
use super::inline::Piece;
use super::inodes::{self, Node, ROOT_INODE};
use super::mapping::{Budget, Run};
use super::superblock::{FileSystem, Super, probe};
use super::{LOST_FOUND, Location, ReadError, journal};
use crate::source::{Extent, Map, ReadAt, SourceId};
use crate::tree::{Inode, InodeId, Kind, Metadata, Origin, OriginId, ROOT, Tree};

pub use partial::{Depth, Want, read_some};

/// Maximum length of a path in system calls, including NUL (`PATH_MAX`). It also limits the depth of a tree.
const PATH_MAX: usize = 4096;
/// Maximum total length of all paths, which a listing keeps in memory. Those of a Debian root have 6 MiB.
const MAX_PATH_BYTES: usize = 128 << 20;

/// Reads a whole volume; all nodes get `origin`, and contents refer to ranges of `source` after a replay of its
/// journal.
pub fn read(source: Arc<dyn ReadAt>, origin: Origin) -> Result<(FileSystem, Tree), ReadError> {
    read_checked(journal::replayed(source)?, origin, |_| Ok(()))
}

/// Reads a whole volume as the base of a new one: refuses features that would be lost, and a volume that is not clean.
pub fn read_base(source: Arc<dyn ReadAt>, origin: Origin) -> Result<(FileSystem, Tree), ReadError> {
    probe(&*source)?.check_base()?;
    read_checked(source, origin, Node::check_base)
}

fn read_checked(
    source: Arc<dyn ReadAt>,
    origin: Origin,
    check: impl Fn(&Node) -> Result<(), ReadError>,
) -> Result<(FileSystem, Tree), ReadError> {
    let volume = Super::open(&*source)?.with_tables()?;
    let nodes = inodes::read(&volume)?;
    nodes.iter().try_for_each(check)?;
    let contents = blocks::read(&volume, &nodes, Scope::Whole, &mut Budget::of(&volume))?;
    let info = volume.info.clone();
    let block = volume.block;
    let tree = Join::new(&volume, &nodes, &contents).tree(source.clone(), block, origin)?;
    Ok((info, tree))
}

/// Follows the entries from the root and records the nodes reached.
struct Join<'a> {
    volume: &'a Super<'a>,
    nodes: &'a [Node],
    contents: &'a Contents,
    /// By index of the node: its inode in the tree once reached, and the number of names found.
    reached: Vec<(Option<InodeId>, u32)>,
    /// Bytes of the paths of all names.
    path_bytes: usize,
}

/// A directory with entries still to be inserted.
struct Pending {
    index: usize,
    id: InodeId,
    path: Vec<u8>,
}

impl<'a> Join<'a> {
    fn new(volume: &'a Super<'a>, nodes: &'a [Node], contents: &'a Contents) -> Self {
        Self { volume, nodes, contents, reached: vec![(None, 0); nodes.len()], path_bytes: 0 }
    }

    fn tree(mut self, source: Arc<dyn ReadAt>, block: u64, origin: Origin) -> Result<Tree, ReadError> {
        let Some(root) = self.find(ROOT_INODE).filter(|root| self.nodes[*root].kind == FileType::Dir) else {
            return Err(ReadError::corrupt(Location::Inode(ROOT_INODE), DirectoryFault::NoRoot));
        };
        let mut tree = Tree::new(self.metadata(root)?, origin);
        let made = Made { source: tree.sources_mut().add(source), block, origin: tree.inode(ROOT).origin };
        self.reached[root] = (Some(ROOT), 1);
        self.check_parent(root, ROOT_INODE, b"/")?;
        let mut todo = vec![Pending { index: root, id: ROOT, path: Vec::new() }];
        while let Some(dir) = todo.pop() {
            let Content::Directory(directory) = &self.contents.of[dir.index] else { continue };
            let mut subdirs = 0;
            for entry in &directory.entries {
                let path = [&dir.path, &b"/"[..], &entry.name].concat();
                let index = self.child(&dir, entry, &path)?;
                if self.nodes[index].kind == FileType::Dir {
                    subdirs += 1;
                    self.check_parent(index, self.nodes[dir.index].number, &path)?;
                    if dir.id == ROOT && entry.name == LOST_FOUND && self.is_empty(index) {
                        self.reached[index] = (Some(ROOT), 1);
                        continue;
                    }
                }
                if let Some(pending) = self.place(&mut tree, &made, &dir, entry, index, path)? {
                    todo.push(pending);
                }
            }
            self.check_subdirs(&dir, subdirs)?;
        }
        self.check_links()?;
        Ok(tree)
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.nodes.binary_search_by_key(&number, |node| node.number).ok()
    }

    /// The node of an entry.
    fn child(&mut self, dir: &Pending, entry: &Entry, path: &[u8]) -> Result<usize, ReadError> {
        let place = || at(entry.inode, path);
        let unsupported = |feature| Err(ReadError::unsupported(Location::Inode(entry.inode), feature, REBUILD));
        if path.len() >= PATH_MAX {
            return unsupported(format!("path of {} bytes", path.len()));
        }
        self.path_bytes += path.len();
        if self.path_bytes > MAX_PATH_BYTES {
            return unsupported(format!("names whose paths have more than {MAX_PATH_BYTES} bytes"));
        }
        let Some(index) = self.find(entry.inode) else {
            let directory = self.nodes[dir.index].number;
            return Err(ReadError::corrupt(place(), DirectoryFault::EntryUnused { directory }));
        };
        check_type(entry.file_type, self.nodes[index].kind).map_err(|what| ReadError::corrupt(place(), what))?;
        Ok(index)
    }

    /// Inserts the node into the tree. Directories are returned, to be processed later.
    fn place(
        &mut self,
        tree: &mut Tree,
        made: &Made,
        dir: &Pending,
        entry: &Entry,
        index: usize,
        path: Vec<u8>,
    ) -> Result<Option<Pending>, ReadError> {
        let node = &self.nodes[index];
        let place = || at(node.number, &path);
        let name = || String::from_utf8_lossy(&entry.name).into_owned();
        // Other errors of a tree have been checked before.
        let invalid = |_| ReadError::corrupt(place(), DirectoryFault::Name { name: name() });
        if tree.entry(dir.id, &entry.name).is_some() {
            return Err(ReadError::corrupt(place(), DirectoryFault::NameTwice { name: name() }));
        }
        let is_dir = node.kind == FileType::Dir;
        match self.reached[index].0 {
            Some(_) if is_dir => return Err(ReadError::corrupt(place(), DirectoryFault::TwoNames)),
            Some(id) => tree.link(dir.id, &entry.name, id).map_err(invalid)?,
            None => {
                let inode = Inode { meta: self.metadata(index)?, kind: self.kind(index, made), origin: made.origin };
                self.reached[index].0 = Some(tree.insert(dir.id, &entry.name, inode).map_err(invalid)?);
            }
        }
        self.reached[index].1 += 1;
        let id = self.reached[index].0.filter(|_| is_dir);
        Ok(id.map(|id| Pending { index, id, path }))
    }

    fn metadata(&self, index: usize) -> Result<Metadata, ReadError> {
        let node = &self.nodes[index];
        let mut xattrs = node.body.xattrs.clone();
        for (name, value) in self.contents.xattrs.get(&node.xattr_block).into_iter().flatten() {
            self.volume.spend_on_attribute((name.len() + value.len()) as u64)?;
            if xattrs.insert(name.clone(), value.clone()).is_some() {
                let what = AttributeFault::Twice { name: String::from_utf8_lossy(name).into_owned() };
                return Err(ReadError::corrupt(Location::Inode(node.number), what));
            }
        }
        Ok(Metadata { mode: node.mode, uid: node.uid, gid: node.gid, mtime: node.mtime, xattrs })
    }

    fn kind(&self, index: usize, made: &Made) -> Kind {
        let node = &self.nodes[index];
        let (major, minor) = node.device();
        match (&self.contents.of[index], node.kind) {
            (Content::Directory(_), _) => Kind::directory(),
            (Content::File(runs), _) => Kind::File(made.map(runs, node.size)),
            (Content::Inline(pieces), _) => Kind::File(made.inline(pieces, node.size)),
            (Content::Symlink(target), _) => Kind::Symlink(target.clone()),
            (Content::Special, FileType::CharDev) => Kind::CharDevice { major, minor },
            (Content::Special, FileType::BlockDev) => Kind::BlockDevice { major, minor },
            (Content::Special, FileType::Fifo) => Kind::Fifo,
            (Content::Special, _) => Kind::Socket,
        }
    }

    fn directory(&self, index: usize) -> Option<&Directory> {
        match &self.contents.of[index] {
            Content::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    fn is_empty(&self, index: usize) -> bool {
        self.directory(index).is_some_and(|directory| directory.entries.is_empty())
    }

    fn check_parent(&self, index: usize, expected: u32, path: &[u8]) -> Result<(), ReadError> {
        let found = self.directory(index).map_or(0, |directory| directory.parent);
        if found != expected {
            let what = DirectoryFault::Parent { found, expected };
            return Err(ReadError::corrupt(at(self.nodes[index].number, path), what));
        }
        Ok(())
    }

    /// A directory has a link for its name, for `.`, and for `..` of each subdirectory, or 1 if there are too many.
    fn check_subdirs(&self, dir: &Pending, subdirs: u32) -> Result<(), ReadError> {
        let node = &self.nodes[dir.index];
        if node.links != 1 && node.links != subdirs + 2 {
            let what = InodeFault::Subdirectories { links: node.links, found: subdirs };
            return Err(ReadError::corrupt(at(node.number, &dir.path), what));
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), ReadError> {
        for (node, (id, names)) in self.nodes.iter().zip(&self.reached) {
            if node.kind != FileType::Dir && id.is_some() && node.links != *names {
                let what = InodeFault::Links { links: node.links, names: *names };
                return Err(ReadError::corrupt(Location::Inode(node.number), what));
            }
        }
        Ok(())
    }
}

/// The parameters of all nodes of the tree.
struct Made {
    source: SourceId,
    block: u64,
    origin: OriginId,
}

impl Made {
    /// The ranges of the volume with a file's content, without bytes past its end.
    fn map(&self, runs: &[Run], size: u64) -> Map {
        let mut map = Map::hole(size);
        for run in runs.iter().filter(|run| run.written) {
            let at = run.logical * self.block;
            let len = (run.len * self.block).min(size.saturating_sub(at));
            map.push(Extent { at, len, source: self.source, offset: run.physical * self.block });
        }
        map
    }

    /// As [`Self::map`], for a content in its inode.
    fn inline(&self, pieces: &[Piece], size: u64) -> Map {
        let mut map = Map::hole(size);
        for piece in pieces {
            map.push(Extent { at: piece.at, len: piece.len, source: self.source, offset: piece.offset });
        }
        map
    }
}

fn at(inode: u32, path: &[u8]) -> Location {
    Location::Path { inode, path: String::from_utf8_lossy(path).into_owned() }
}

/// An entry must have the type of its inode, if any: without the feature `filetype`, and on Hurd, it has none.
fn check_type(found: Option<u8>, kind: FileType) -> Result<(), DirectoryFault> {
    let expected = match kind {
        FileType::Regular => file_type::REG,
        FileType::Dir => file_type::DIR,
        FileType::Symlink => file_type::SYMLINK,
        FileType::CharDev => file_type::CHR,
        FileType::BlockDev => file_type::BLK,
        FileType::Fifo => file_type::FIFO,
        FileType::Socket => file_type::SOCK,
        FileType::Unknown => 0,
    };
    match found {
        Some(found) if found != 0 && found != expected => Err(DirectoryFault::EntryType { found, expected }),
        _ => Ok(()),
    }
}
