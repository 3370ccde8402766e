//! Lays out files of a tree as a cpio archive in the format of an initramfs: `newc` (Linux, `early-userspace/buffer-format.rst`).
//!
//! The archive is a [`Disk`]: headers in memory, contents as references to the sources of the tree, padding as holes. Its bytes are those of
//! GNU cpio 2.15, `cpio --reproducible --create --format=newc`: numbers of 8 hexadecimal digits; inodes are numbered from 0 in the order of the
//! members, directories have 2 links, device numbers of the file system are 0. Headers with names, and contents, are padded to 4 bytes, the
//! archive to 512. Names and link targets lose a leading `./`. The content of a file with several names follows the last one; its other names
//! are written directly before that, without content. If not all names are members, they follow at the end.
//!
//! The format has neither fractions of seconds nor extended attributes: as in cpio, they are left out. Sockets, and numbers that need more
//! digits, are refused.

use std::collections::HashMap;
use std::sync::Arc;

use crate::disk::Disk;
use crate::source::{Extent, Map};
use crate::tree::{Inode, InodeId, Kind, Metadata, Tree, show};

const MAGIC: &[u8] = b"070701";
const TRAILER: &[u8] = b"TRAILER!!!";
const ALIGNMENT: u64 = 4;
const BLOCK: u64 = 512;
/// Link count of a directory, as cpio writes it.
const DIRECTORY_LINKS: u32 = 2;

/// A name in the archive, and the inode of the tree.
pub type Member<'a> = (&'a [u8], InodeId);

/// Why a member cannot be in an archive.
#[derive(Debug, thiserror::Error)]
#[error("{name}: unsupported in a cpio archive: {what}")]
pub struct CpioError {
    pub name: String,
    pub what: String,
}

/// A header, and where the content of its member is.
#[derive(Default)]
struct Layout {
    headers: Vec<u8>,
    /// Position in the archive, position and length in the headers.
    parts: Vec<(u64, u64, u64)>,
    contents: Vec<(u64, Map)>,
    end: u64,
}

/// Lays out `members` as an archive. Reads no contents.
pub fn author(tree: &Tree, members: &[Member<'_>]) -> Result<Disk, CpioError> {
    let mut links: HashMap<InodeId, u32> = HashMap::new();
    tree.walk().for_each(|(_, id, _)| *links.entry(id).or_default() += 1);
    let mut numbers: HashMap<InodeId, u32> = HashMap::new();
    for (_, id) in members {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        numbers.entry(*id).or_insert(next);
    }
    let mut layout = Layout::default();
    let mut sources = tree.sources().clone();
    for (member, has_content) in order(tree, members, &links) {
        let (name, id) = members[member];
        let failed = |what: String| CpioError { name: show(name), what };
        let inode = tree.inode(id);
        let content = match &inode.kind {
            Kind::File(map) if has_content => map.clone(),
            Kind::Symlink(target) => {
                let target = stripped(target).to_vec();
                let len = target.len() as u64;
                Map::whole(sources.add(Arc::new(target)), 0, len)
            }
            _ => Map::hole(0),
        };
        if let Some(extent) =
            content.extents().iter().find(|it| it.offset.saturating_add(it.len) > sources.get(it.source).len())
        {
            let len = sources.get(extent.source).len();
            return Err(failed(format!(
                "content of {} bytes at {} of a source that has {len}",
                extent.len, extent.offset
            )));
        }
        let fields = fields(inode, numbers[&id], links.get(&id).copied().unwrap_or(1), content.len());
        layout.add(stripped(name), fields.map_err(failed)?, content);
    }
    let trailer = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    layout.add(TRAILER, trailer, Map::hole(0));
    let mut map = Map::hole(layout.end.next_multiple_of(BLOCK));
    let headers = sources.add(Arc::new(layout.headers));
    let mut contents = layout.contents.iter().peekable();
    for (at, offset, len) in layout.parts {
        map.push(Extent { at, len, source: headers, offset });
        if let Some((start, content)) = contents.next() {
            content.extents().iter().for_each(|extent| map.push(Extent { at: start + extent.at, ..*extent }));
        }
    }
    Ok(Disk::new(map, sources))
}

/// A name or link target without a leading `./`, as cpio writes both.
fn stripped(name: &[u8]) -> &[u8] {
    let mut rest = name;
    while let Some(after) = rest.strip_prefix(b"./").filter(|_| name != b"./") {
        rest = &after[after.iter().take_while(|byte| **byte == b'/').count()..];
    }
    rest
}

/// The order in which members are written, and whether their content follows.
fn order(tree: &Tree, members: &[Member<'_>], links: &HashMap<InodeId, u32>) -> Vec<(usize, bool)> {
    let mut order = Vec::with_capacity(members.len());
    // Names whose inode has further names among the next members.
    let mut waiting: HashMap<InodeId, Vec<usize>> = HashMap::new();
    for (member, (_, id)) in members.iter().enumerate() {
        let count = links.get(id).copied().unwrap_or(1);
        if count < 2 || !matches!(tree.inode(*id).kind, Kind::File(_)) {
            order.push((member, true));
            continue;
        }
        let others = waiting.entry(*id).or_default();
        if u32::try_from(others.len() + 1) == Ok(count) {
            order.extend(others.drain(..).rev().map(|other| (other, false)));
            order.push((member, true));
        } else {
            others.push(member);
        }
    }
    // Inodes with names that are not members, in reverse order; the first name has the content.
    let rest = waiting.values().flat_map(|others| others.iter().enumerate().map(|(place, other)| (*other, place == 0)));
    let mut rest: Vec<(usize, bool)> = rest.collect();
    rest.sort_by(|a, b| b.cmp(a));
    order.extend(rest);
    order
}

/// The fields of a header up to `rdevminor`, without the length of the name.
fn fields(inode: &Inode, number: u32, links: u32, len: u64) -> Result<[u32; 11], String> {
    let (kind, device) = match &inode.kind {
        Kind::Directory(_) => (0o040_000, [0, 0]),
        Kind::File(_) => (0o100_000, [0, 0]),
        Kind::Symlink(_) => (0o120_000, [0, 0]),
        Kind::CharDevice { major, minor } => (0o020_000, [*major, *minor]),
        Kind::BlockDevice { major, minor } => (0o060_000, [*major, *minor]),
        Kind::Fifo => (0o010_000, [0, 0]),
        Kind::Socket => return Err("socket".to_owned()),
    };
    let Metadata { mode, uid, gid, mtime, .. } = &inode.meta;
    // Linux gives all links this mode.
    let mode = if matches!(inode.kind, Kind::Symlink(_)) { 0o777 } else { u32::from(*mode) };
    let links = if matches!(inode.kind, Kind::Directory(_)) { DIRECTORY_LINKS } else { links };
    let secs = u32::try_from(mtime.secs).map_err(|_| format!("modification time {}", mtime.secs))?;
    let len = u32::try_from(len).map_err(|_| format!("content of {len} bytes"))?;
    Ok([number, kind | mode, *uid, *gid, links, secs, len, 0, 0, device[0], device[1]])
}

impl Layout {
    fn add(&mut self, name: &[u8], fields: [u32; 11], content: Map) {
        let offset = self.headers.len() as u64;
        self.headers.extend_from_slice(MAGIC);
        // Names of a tree have fewer than 4 GiB.
        let name_len = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        for field in fields.into_iter().chain([name_len, 0]) {
            self.headers.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.headers.extend_from_slice(name);
        self.headers.push(0);
        let len = self.headers.len() as u64 - offset;
        self.parts.push((self.end, offset, len));
        let start = (self.end + len).next_multiple_of(ALIGNMENT);
        self.end = (start + content.len()).next_multiple_of(ALIGNMENT);
        self.contents.push((start, content));
    }
}
