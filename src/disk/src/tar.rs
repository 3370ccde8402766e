//! Lays out a tree as a tar archive: pax interchange format (POSIX.1-2001), blocks of 512 bytes.
//!
//! The archive is a [`Disk`]: headers in memory, contents as references to the sources of the tree, padding as holes. So
//! it can be read at any offset, and nothing is copied before it is written.
//!
//! The tree alone determines the bytes. Members are in the order of [`Tree::walk`]; paths are relative,
//! those of directories end with a slash, and the root is `./`. The second name of an inode is a hard link to the first, with the
//! same metadata. Owners are numbers without names, which other machines would map to other numbers. A pax record
//! contains what a header field cannot: long or non-ASCII names, large numbers, fractions of seconds, and extended
//! attributes as `SCHILY.xattr.NAME`, with values as `getxattr(2)` returns them. Access control lists are also there as
//! text, `SCHILY.acl.access` and `SCHILY.acl.default`. Holes of files are stored as zeros.
//!
//! The empty directory `/lost+found` belongs to the file system and is left out. Sockets are refused: the format has no
//! type for them.

mod acl;
mod header;

use std::collections::BTreeMap;
use std::sync::Arc;

use header::Header;

use crate::disk::Disk;
use crate::source::{Extent, Map, Sources};
use crate::tree::{Inode, InodeId, Kind, Tree};

/// Block size in bytes.
const BLOCK: u64 = 512;
const BLOCK_LEN: usize = 512;
/// The path of the directory that every ext4 has.
const LOST_FOUND: &[u8] = b"/lost+found";

/// Why a tree was not laid out.
#[derive(Debug, thiserror::Error)]
#[error("{path}: unsupported in a tar archive: {refusal}")]
pub struct TarError {
    pub path: String,
    pub refusal: TarRefusal,
}

/// Why a node cannot be a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TarRefusal {
    #[error("is a socket")]
    Socket,
    #[error("name or link target is not UTF-8")]
    Name,
    #[error("extended attribute name {name:?} is not UTF-8 or contains `=` or `%`")]
    XattrName { name: String },
    #[error("access control list {name} is malformed")]
    Acl { name: String },
    #[error("device number {major}:{minor} is too large")]
    Device { major: u32, minor: u32 },
    #[error("content of {needed} bytes of a source that has {len}")]
    ShortSource {
        /// End of the content in the source.
        needed: u64,
        len: u64,
    },
}

/// A part of the archive after the headers so far.
struct Part<'a> {
    /// Position in the archive.
    at: u64,
    /// Position and length in the headers.
    header: u64,
    header_len: u64,
    content: Option<&'a Map>,
}

/// Lays out `tree` as an archive. Reads no contents.
pub fn author(tree: &Tree) -> Result<Disk, TarError> {
    let mut names: BTreeMap<InodeId, Vec<u8>> = BTreeMap::new();
    let (mut headers, mut parts, mut at) = (Vec::new(), Vec::new(), 0_u64);
    for (path, id, inode) in tree.walk() {
        if path == LOST_FOUND && inode.kind == Kind::directory() {
            continue;
        }
        let failed = |refusal| TarError { path: shown(&path), refusal };
        let name = member_name(&path, inode);
        let first = names.entry(id).or_insert_with(|| name.clone());
        let is_link = *first != name;
        let bytes = Header::new(&name, inode, is_link.then_some(&first[..])).and_then(|header| header.to_bytes());
        let bytes = bytes.map_err(failed)?;
        let content = match &inode.kind {
            Kind::File(map) if !is_link => Some(map),
            _ => None,
        };
        content.map_or(Ok(()), |map| check_sources(map, tree.sources())).map_err(failed)?;
        let (header, header_len) = (headers.len() as u64, bytes.len() as u64);
        headers.extend_from_slice(&bytes);
        parts.push(Part { at, header, header_len, content });
        at += header_len + content.map_or(0, |map| map.len().next_multiple_of(BLOCK));
    }
    // Two blocks of zeros end an archive.
    Ok(assemble(tree, headers, &parts, at + 2 * BLOCK))
}

fn assemble(tree: &Tree, headers: Vec<u8>, parts: &[Part<'_>], len: u64) -> Disk {
    let mut sources = tree.sources().clone();
    let source = sources.add(Arc::new(headers));
    let mut map = Map::hole(len);
    for part in parts {
        map.push(Extent { at: part.at, len: part.header_len, source, offset: part.header });
        let start = part.at + part.header_len;
        for extent in part.content.iter().flat_map(|content| content.extents()) {
            map.push(Extent { at: start + extent.at, ..*extent });
        }
    }
    Disk::new(map, sources)
}

/// The name of the member at `path` of the tree.
fn member_name(path: &[u8], inode: &Inode) -> Vec<u8> {
    let slash: &[u8] = if matches!(inode.kind, Kind::Directory(_)) { b"/" } else { b"" };
    match path.strip_prefix(b"/") {
        Some(path) => [path, slash].concat(),
        None => b"./".to_vec(),
    }
}

/// A run beyond the end of its source could read as a hole.
fn check_sources(map: &Map, sources: &Sources) -> Result<(), TarRefusal> {
    for extent in map.extents() {
        let (needed, len) = (extent.offset.saturating_add(extent.len), sources.get(extent.source).len());
        if needed > len {
            return Err(TarRefusal::ShortSource { needed, len });
        }
    }
    Ok(())
}

fn shown(path: &[u8]) -> String {
    if path.is_empty() { "/".to_owned() } else { crate::tree::show(path) }
}
