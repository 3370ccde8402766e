//! Metadata blocks of inodes: directories, long link targets and attribute blocks, all read in ascending order.

use std::collections::BTreeMap;

use mkext4::spec::inode::FileType;

use super::corruption::{AttributeFault, DirectoryFault, InodeFault, VolumeFault};
use super::directory::Directory;
use super::error::REBUILD;
use super::inline::{self, Piece};
use super::inodes::{I_BLOCK_LEN, Node};
use super::mapping::{self, Budget, Run};
use super::superblock::Super;
use super::xattrs::{self, Xattrs};
use super::{Location, ReadError};

/// Maximum bytes of a single read.
const MAX_READ: u64 = 1 << 20;
/// Gap between two blocks, in bytes, that is read as well rather than starting another read.
const MAX_GAP: u64 = 64 << 10;
/// Maximum number of names. The root of a Debian system has 100,000 at most.
const MAX_NAMES: usize = 2_000_000;
/// Maximum blocks of a file, whose numbers have 32 bits.
const MAX_FILE: u64 = 1 << 32;

/// The contents of the blocks of an inode.
pub(super) enum Content {
    Directory(Directory),
    File(Vec<Run>),
    /// A file stored in its inode.
    Inline([Piece; 2]),
    Symlink(Vec<u8>),
    /// Devices, pipes and sockets have no blocks.
    Special,
}

/// The contents of all inodes, in order, and the attributes of all attribute blocks.
pub(super) struct Contents {
    pub(super) of: Vec<Content>,
    pub(super) xattrs: BTreeMap<u64, Xattrs>,
}

/// The part of a volume that the nodes cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All nodes, with the entries of directories.
    Whole,
    /// Some nodes, with the entries of directories.
    Names,
    /// Some nodes, without entries.
    Nodes,
}

/// Blocks to read, and their purpose.
struct Want {
    block: u64,
    len: u64,
    purpose: Purpose,
}

/// The purpose of a read.
enum Purpose {
    /// Blocks from `logical` on of the directory at this index of the node list.
    Directory { index: usize, logical: u64 },
    /// The target of the link at this index.
    Symlink { index: usize },
    /// An attribute block with `users` references, of which this is the first.
    Xattrs { index: usize, users: u32 },
}

/// Reads what is required to build a tree. The total is limited by the size of the volume, regardless of the inodes:
/// `budget` is shared by all nodes of the tree.
pub(super) fn read(
    volume: &Super<'_>,
    nodes: &[Node],
    scope: Scope,
    budget: &mut Budget,
) -> Result<Contents, ReadError> {
    let mut contents = Contents { of: Vec::with_capacity(nodes.len()), xattrs: BTreeMap::new() };
    let mut wanted = BlockList { volume, budget, directory_blocks: 0, wants: Vec::new() };
    let mut users: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        contents.of.push(match node.kind {
            FileType::Dir if scope == Scope::Nodes => Content::Directory(Directory::default()),
            _ => wanted.content(node, index)?,
        });
        if node.xattr_block != 0 {
            users.entry(node.xattr_block).or_insert((index, 0)).1 += 1;
        }
    }
    if scope == Scope::Whole {
        wanted.budget.check_claims()?;
    }
    let mut wants = wanted.wants;
    let xattrs = |(block, (index, users))| Want { block, len: 1, purpose: Purpose::Xattrs { index, users } };
    wants.extend(users.into_iter().map(xattrs));
    wants.sort_by_key(|want| want.block);
    let mut names = 0;
    read_each(volume, &wants, |want, block, bytes| match &want.purpose {
        Purpose::Directory { index, logical } => match &mut contents.of[*index] {
            Content::Directory(directory) => {
                names -= directory.entries.len();
                directory.add_block(volume, &nodes[*index], logical + (block - want.block), block, bytes)?;
                names += directory.entries.len();
                check_names(&nodes[*index], names)
            }
            _ => Ok(()),
        },
        Purpose::Symlink { index } => {
            let node = &nodes[*index];
            let len = usize::try_from(node.size).unwrap_or(volume.block_len);
            contents.of[*index] = Content::Symlink(target(node, &bytes[..len])?);
            Ok(())
        }
        Purpose::Xattrs { index, users } => {
            let users = (scope == Scope::Whole && volume.info.is_clean()).then_some(*users);
            contents.xattrs.insert(block, xattr_block(volume, &nodes[*index], users, block, bytes)?);
            Ok(())
        }
    })?;
    Ok(contents)
}

/// The list of blocks to read.
struct BlockList<'a> {
    volume: &'a Super<'a>,
    budget: &'a mut Budget,
    /// Blocks of directories so far.
    directory_blocks: u64,
    wants: Vec<Want>,
}

impl BlockList<'_> {
    /// Determines the content from the inode and the runs of its blocks; further blocks are added to the list.
    fn content(&mut self, node: &Node, index: usize) -> Result<Content, ReadError> {
        let place = Location::Inode(node.number);
        match node.kind {
            FileType::Dir if node.has_inline_data() => Directory::inline(self.volume, node).map(Content::Directory),
            FileType::Dir => self.directory(node, index),
            FileType::Regular if node.has_inline_data() => inline::pieces(node).map(Content::Inline),
            FileType::Regular if node.size > MAX_FILE * self.volume.block => {
                Err(ReadError::corrupt(place, InodeFault::FileLen { len: node.size }))
            }
            FileType::Regular => mapping::read(self.volume, node, self.budget).map(Content::File),
            FileType::Symlink if node.has_inline_data() => {
                let bytes = inline::bytes(self.volume, node)?.concat();
                target(node, &bytes).map(Content::Symlink)
            }
            FileType::Symlink if node.size < I_BLOCK_LEN as u64 && !node.has_extents() => {
                let len = usize::try_from(node.size).unwrap_or(0);
                target(node, &node.i_block[..len]).map(Content::Symlink)
            }
            FileType::Symlink => {
                let runs = mapping::read(self.volume, node, self.budget)?;
                match runs.first() {
                    Some(run) if run.logical == 0 && run.written && node.size < self.volume.block => {
                        self.wants.push(Want { block: run.physical, len: 1, purpose: Purpose::Symlink { index } });
                        Ok(Content::Symlink(Vec::new()))
                    }
                    _ => Err(ReadError::corrupt(place, InodeFault::TargetLen { len: node.size })),
                }
            }
            _ => Ok(Content::Special),
        }
    }

    fn directory(&mut self, node: &Node, index: usize) -> Result<Content, ReadError> {
        let place = Location::Inode(node.number);
        let block = self.volume.block;
        let blocks = node.size / block;
        let most = self.volume.info.blocks.saturating_sub(self.directory_blocks);
        if !node.size.is_multiple_of(block) || blocks == 0 || blocks > most {
            return Err(ReadError::corrupt(place, DirectoryFault::Len { len: node.size }));
        }
        let mut covered = 0;
        for run in mapping::read(self.volume, node, self.budget)?.iter().take_while(|run| run.logical < blocks) {
            if run.logical != covered || !run.written {
                break;
            }
            let len = run.len.min(blocks - covered);
            let purpose = Purpose::Directory { index, logical: run.logical };
            self.wants.push(Want { block: run.physical, len, purpose });
            covered += len;
        }
        self.directory_blocks += covered;
        if covered != blocks {
            return Err(ReadError::corrupt(place, DirectoryFault::Hole { block: covered }));
        }
        Ok(Content::Directory(Directory::default()))
    }
}

fn target(node: &Node, bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    if bytes.is_empty() || bytes.contains(&0) {
        let what = InodeFault::Target { target: String::from_utf8_lossy(bytes).into_owned() };
        return Err(ReadError::corrupt(Location::Inode(node.number), what));
    }
    Ok(bytes.to_vec())
}

/// The attributes of a block; `users` is the number of references, if known.
fn xattr_block(
    volume: &Super<'_>,
    node: &Node,
    users: Option<u32>,
    block: u64,
    bytes: &[u8],
) -> Result<Xattrs, ReadError> {
    let found = xattrs::in_block(volume, &node.owner(), block, bytes)?;
    if users.is_some_and(|users| users != found.users) {
        let what = AttributeFault::Users { found: found.users };
        return Err(ReadError::corrupt(Location::Block { inode: node.number, block }, what));
    }
    Ok(found.xattrs)
}

fn check_names(node: &Node, names: usize) -> Result<(), ReadError> {
    if names > MAX_NAMES {
        let feature = format!("more than {MAX_NAMES} names");
        return Err(ReadError::unsupported(Location::Inode(node.number), feature, REBUILD));
    }
    Ok(())
}

/// Passes the blocks of the wants, which must be sorted, to the caller; blocks that are close together are read at
/// once.
fn read_each(
    volume: &Super<'_>,
    wants: &[Want],
    mut each: impl FnMut(&Want, u64, &[u8]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let (max_gap, max_read) = (MAX_GAP / volume.block, MAX_READ / volume.block);
    let mut buf = Vec::new();
    let blocks = wants.iter().flat_map(|want| (0..want.len).map(move |at| (want.block.saturating_add(at), want)));
    let mut blocks = blocks.peekable();
    let mut batch = Vec::new();
    while let Some((first, want)) = blocks.next() {
        let mut last = first;
        batch.push((first, want));
        // With shared blocks, the next want may start before.
        let is_near = |last, block| block >= last && block - last <= max_gap && block - first < max_read;
        while let Some((block, want)) = blocks.next_if(|(block, _)| is_near(last, *block)) {
            last = block;
            batch.push((block, want));
        }
        if last >= volume.info.blocks {
            let what = VolumeFault::OutOfRange { block: last, blocks: volume.info.blocks };
            return Err(ReadError::corrupt(Location::Superblock, what));
        }
        let len = usize::try_from((last - first + 1) * volume.block).unwrap_or(0);
        buf.resize(len, 0);
        volume.read(&mut buf, first * volume.block)?;
        for (block, want) in batch.drain(..) {
            let at = usize::try_from((block - first) * volume.block).unwrap_or(0);
            each(want, block, &buf[at..at + volume.block_len])?;
        }
    }
    Ok(())
}
