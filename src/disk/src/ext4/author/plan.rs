//! Plans the declarations to the library; everything that ext4 does not support is refused here, with its path.

use std::collections::BTreeMap;
use std::ops::Range;

use mkext4::{Meta, SpecialKind};

use super::{AuthorError, groups};
use crate::ext4::corruption::AclFault;
use crate::ext4::xattrs::ACLS;
use crate::ext4::{BLOCK, BLOCK_LEN, LINK_MAX, LOST_FOUND, acl};
use crate::source::{Map, SourceId};
use crate::tree::{Inode, InodeId, Kind, Metadata, ROOT, Timestamp, Tree};

/// Supported times in seconds, without the last of four epochs: e2fsck treats times in it, from 2310-04-04 on, as times
/// before 1970 that an old kernel wrote incorrectly, and changes them.
const TIMES: std::ops::RangeInclusive<i64> = -(1 << 31)..=(3 << 32) - (1 << 31) - 1;
/// Maximum file size: block numbers in a file have 32 bits, and the last one is unused.
const MAX_FILE: u64 = ((1 << 32) - 1) * BLOCK;
/// Maximum data ranges of a file; an extent tree of two levels holds a few more, for additional splits by a layout.
const MAX_RANGES: usize = 400_000;
/// Space for attributes in an inode of 256 bytes, without the magic number.
const INODE_XATTRS: usize = 92;
/// Inodes that no tree uses: ten reserved ones and `lost+found`.
const OWN_INODES: u64 = 11;

/// Why ext4, or the library, does not support a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("name is not UTF-8")]
    Name,
    #[error("link target is not UTF-8")]
    Target,
    #[error("link target of {len} bytes, expected 1 to 4095 bytes without NUL")]
    TargetLength { len: usize },
    #[error("mode {mode:#o} has bits other than permissions")]
    Mode { mode: u16 },
    #[error("modification time, {secs} s and {nanos} ns, is not between 1901 and 2310")]
    Time {
        /// Seconds since 1970.
        secs: i64,
        nanos: u32,
    },
    #[error("device number {major}:{minor} is too large")]
    Device { major: u32, minor: u32 },
    #[error("{found} hard links, the maximum is 65000")]
    Links { found: u32 },
    #[error("file of {len} bytes, the maximum is 16 TiB")]
    FileSize { len: u64 },
    #[error("{found} separate data ranges, more than an extent tree of two levels can hold")]
    Ranges { found: usize },
    #[error("extended attribute name {name:?} is not UTF-8 or in an unknown namespace")]
    XattrName { name: String },
    #[error("extended attributes do not fit into the inode and one block of 4096 bytes")]
    XattrSize,
    #[error("access control list {name}: {what}")]
    Acl { name: String, what: AclFault },
    #[error("lost+found is reserved for the file system and must be an empty directory")]
    LostFound,
}

/// An inode to declare.
pub(super) struct Item<'a> {
    /// Position of its directory: 0 is the root, n is item n - 1.
    pub(super) parent: usize,
    pub(super) name: String,
    pub(super) meta: Meta,
    /// Values in the on-disk format.
    pub(super) xattrs: Vec<(String, Vec<u8>)>,
    pub(super) content: Content<'a>,
}

/// The type and content of an inode.
pub(super) enum Content<'a> {
    Directory,
    Symlink(&'a str),
    Special(SpecialKind),
    File {
        map: &'a Map,
        /// The ranges with blocks, in bytes, widened to whole blocks.
        data: Vec<Range<u64>>,
    },
}

/// An additional name of an item; positions as in [`Item::parent`].
pub(super) struct Link {
    pub(super) parent: usize,
    pub(super) name: String,
    pub(super) target: usize,
}

/// Items that are placed together, see [`groups`]; positions in the list of items.
#[derive(Debug)]
pub(super) struct Group {
    /// Directories, links and devices; files follow.
    pub(super) start: usize,
    pub(super) files: Range<usize>,
}

/// A tree in the order of declaration: group by group, in each of them directories, links and devices by path, then
/// regular files by the position of their content in the tree's sources.
pub(super) struct Plan<'a> {
    pub(super) root: Item<'a>,
    pub(super) items: Vec<Item<'a>>,
    /// Consecutive; they cover all items.
    pub(super) groups: Vec<Group>,
    pub(super) links: Vec<Link>,
    /// Required inodes, including some spare ones.
    pub(super) inodes: u64,
}

/// An item without a position.
struct Draft<'a> {
    /// Its group, and its position there.
    place: (usize, SortKey),
    parent: InodeId,
    id: InodeId,
    item: Item<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    /// By path.
    Name,
    /// By the source of the content.
    Content(Option<(SourceId, u64)>),
}

impl<'a> Plan<'a> {
    /// Validates every node of the tree and determines its position.
    pub(super) fn new(tree: &'a Tree) -> Result<Self, AuthorError> {
        let root = item(0, String::new(), tree.inode(ROOT), b"/")?;
        let groups = groups::of(tree);
        let (mut drafts, mut more) = (Vec::new(), Vec::new());
        let mut dirs = BTreeMap::from([(Vec::new(), ROOT)]);
        let mut names: BTreeMap<InodeId, u32> = BTreeMap::new();
        for (path, id, inode) in tree.walk().skip(1) {
            if is_lost_found(&path, inode)? {
                continue;
            }
            let (dir, name) = path.split_at(path.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
            let name = std::str::from_utf8(&name[1..]).map_err(|_| refused(&path, Refusal::Name))?.to_owned();
            let parent = dirs.get(dir).copied().unwrap_or(ROOT);
            let count = names.entry(id).or_insert(0);
            *count += 1;
            if *count > LINK_MAX {
                return Err(refused(&path, Refusal::Links { found: *count }));
            }
            if *count > 1 {
                more.push((parent, name, id));
                continue;
            }
            let place = match &inode.kind {
                Kind::File(map) => SortKey::Content(content_place(map)),
                _ => SortKey::Name,
            };
            let group = groups.get(&id).copied().unwrap_or(0);
            drafts.push(Draft { place: (group, place), parent, id, item: item(0, name, inode, &path)? });
            if matches!(inode.kind, Kind::Directory(_)) {
                dirs.insert(path, id);
            }
        }
        Ok(Self::ordered(root, drafts, more))
    }

    /// Sorts everything into the order of declaration.
    fn ordered(root: Item<'a>, mut drafts: Vec<Draft<'a>>, more: Vec<(InodeId, String, InodeId)>) -> Self {
        // Stable: files with the same position, such as empty ones, stay in the order of their paths.
        drafts.sort_by_key(|draft| draft.place);
        let mut plan =
            Self { root, items: Vec::with_capacity(drafts.len()), groups: Vec::new(), links: Vec::new(), inodes: 0 };
        for group in drafts.chunk_by(|a, b| a.place.0 == b.place.0) {
            let start = plan.groups.last().map_or(0, |group| group.files.end);
            let files = start + group.partition_point(|draft| draft.place.1 == SortKey::Name);
            plan.groups.push(Group { start, files: files..start + group.len() });
        }
        let mut positions = BTreeMap::from([(ROOT, 0)]);
        positions.extend(drafts.iter().map(|draft| draft.id).zip(1..));
        let position = |id: &InodeId| positions.get(id).copied().unwrap_or(0);
        plan.items.extend(drafts.into_iter().map(|draft| Item { parent: position(&draft.parent), ..draft.item }));
        for (parent, name, id) in more {
            plan.links.push(Link { parent: position(&parent), name, target: position(&id) });
        }
        // Some spare inodes, so that the first boot can create files even in the smallest volume.
        let used = plan.items.len() as u64 + OWN_INODES;
        plan.inodes = used + (used / 16).max(64);
        plan
    }

    /// A size in bytes that is certainly sufficient for the tree; its exact needs are counted in a volume of this size.
    pub(super) fn ample_bytes(&self) -> u64 {
        let mut blocks: u64 = 0;
        for item in &self.items {
            // A directory, attributes or a link target; and its share of its directory.
            blocks = blocks.saturating_add(4);
            if let Content::File { data, .. } = &item.content {
                let bytes = data.iter().map(|range| range.end - range.start);
                blocks = blocks.saturating_add(bytes.map(|len| len.div_ceil(BLOCK)).sum());
                blocks = blocks.saturating_add(data.len() as u64 / 64);
            }
        }
        let links = self.links.len() as u64;
        let blocks = blocks.saturating_add(links).saturating_add(self.inodes);
        // The metadata of the groups are below a tenth; the rest is for the journal and the last group.
        blocks.saturating_add(blocks / 4).saturating_mul(BLOCK).saturating_add(1 << 29)
    }
}

/// The position of a file's content in the sources of the tree; empty files come first, as `None`.
fn content_place(map: &Map) -> Option<(SourceId, u64)> {
    map.extents().first().map(|extent| (extent.source, extent.offset))
}

/// Whether this is the empty `/lost+found` that every volume has.
fn is_lost_found(path: &[u8], inode: &Inode) -> Result<bool, AuthorError> {
    if path.strip_prefix(b"/") != Some(LOST_FOUND) {
        return Ok(false);
    }
    match &inode.kind {
        Kind::Directory(entries) if entries.is_empty() => Ok(true),
        _ => Err(refused(path, Refusal::LostFound)),
    }
}

fn refused(path: &[u8], refusal: Refusal) -> AuthorError {
    AuthorError::Refused { path: String::from_utf8_lossy(path).into_owned(), refusal }
}

fn item<'a>(parent: usize, name: String, inode: &'a Inode, path: &[u8]) -> Result<Item<'a>, AuthorError> {
    let refuse = |refusal| refused(path, refusal);
    Ok(Item {
        parent,
        name,
        meta: meta(&inode.meta).map_err(refuse)?,
        xattrs: xattrs(&inode.meta).map_err(refuse)?,
        content: content(&inode.kind).map_err(refuse)?,
    })
}

fn meta(meta: &Metadata) -> Result<Meta, Refusal> {
    let Timestamp { secs, nanos } = meta.mtime;
    if meta.mode > 0o7777 {
        return Err(Refusal::Mode { mode: meta.mode });
    }
    if !TIMES.contains(&secs) || nanos >= 1_000_000_000 {
        return Err(Refusal::Time { secs, nanos });
    }
    Ok(Meta::new(meta.mode, meta.uid, meta.gid, (secs, nanos)))
}

fn content(kind: &Kind) -> Result<Content<'_>, Refusal> {
    let device = |major, minor, special| {
        if major > 0xfff || minor > 0xf_ffff { Err(Refusal::Device { major, minor }) } else { Ok(special) }
    };
    Ok(match kind {
        Kind::Directory(_) => Content::Directory,
        Kind::File(map) => Content::File { map, data: ranges(map)? },
        Kind::Symlink(target) => {
            if !(1..BLOCK_LEN).contains(&target.len()) || target.contains(&0) {
                return Err(Refusal::TargetLength { len: target.len() });
            }
            Content::Symlink(std::str::from_utf8(target).map_err(|_| Refusal::Target)?)
        }
        Kind::CharDevice { major, minor } => {
            let (major, minor) = (*major, *minor);
            Content::Special(device(major, minor, SpecialKind::Char { major, minor })?)
        }
        Kind::BlockDevice { major, minor } => {
            let (major, minor) = (*major, *minor);
            Content::Special(device(major, minor, SpecialKind::Block { major, minor })?)
        }
        Kind::Fifo => Content::Special(SpecialKind::Fifo),
        Kind::Socket => Content::Special(SpecialKind::Socket),
    })
}

/// The parts of a file that need blocks, in bytes: its extents widened to whole blocks, joined if they touch.
fn ranges(map: &Map) -> Result<Vec<Range<u64>>, Refusal> {
    if map.len() > MAX_FILE {
        return Err(Refusal::FileSize { len: map.len() });
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for extent in map.extents() {
        let start = extent.at / BLOCK * BLOCK;
        let end = extent.end().next_multiple_of(BLOCK).min(map.len());
        match ranges.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    if ranges.len() > MAX_RANGES {
        return Err(Refusal::Ranges { found: ranges.len() });
    }
    Ok(ranges)
}

/// The attributes in their on-disk format, which must fit as the library places them: in the order of the format, into
/// the inode while there is room, all others into one block.
fn xattrs(meta: &Metadata) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
    let mut all = Vec::with_capacity(meta.xattrs.len());
    let mut sizes = Vec::with_capacity(meta.xattrs.len());
    for (name, value) in &meta.xattrs {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let (index, suffix) = namespace(name).ok_or_else(|| Refusal::XattrName { name: shown() })?;
        let text = std::str::from_utf8(name).map_err(|_| Refusal::XattrName { name: shown() })?;
        let value = if ACLS.contains(&name.as_slice()) {
            acl::to_disk(value).map_err(|what| Refusal::Acl { name: shown(), what })?
        } else {
            value.clone()
        };
        let size = 16 + suffix.len().next_multiple_of(4) + value.len().next_multiple_of(4);
        sizes.push(((index, suffix.len(), suffix), size));
        all.push((text.to_owned(), value));
    }
    sizes.sort();
    let (mut in_inode, mut in_block, mut spilled) = (4, 32 + 4, false);
    for (_, size) in sizes {
        spilled |= in_inode + size > INODE_XATTRS;
        if spilled { in_block += size } else { in_inode += size }
    }
    if in_block > BLOCK_LEN { Err(Refusal::XattrSize) } else { Ok(all) }
}

/// On-disk number of the namespace, and the rest of the name.
fn namespace(name: &[u8]) -> Option<(u8, &[u8])> {
    if name == ACLS[0] {
        return Some((2, b""));
    }
    if name == ACLS[1] {
        return Some((3, b""));
    }
    let prefixes = [(1, &b"user."[..]), (4, b"trusted."), (6, b"security."), (7, b"system.")];
    let found = prefixes.iter().find_map(|(index, prefix)| Some((*index, name.strip_prefix(*prefix)?)));
    found.filter(|(_, suffix)| (1..=255).contains(&suffix.len()) && !suffix.contains(&0))
}
