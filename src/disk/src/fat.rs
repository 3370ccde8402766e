//! FAT12, FAT16 and FAT32: describes a volume, reads it to a [`Tree`], and writes new volumes.
//!
//! Microsoft's FAT specification 1.03 and its long-name extension. Little endian; offsets in bytes from the start of
//! the volume; clusters are numbered from 2. Contents are ranges of the volume, never copies.
//!
//! The type is determined as in Linux: FAT32 if the 16-bit FAT size is 0, otherwise by the number of clusters. Stricter
//! than the specification: no cluster may belong to two files, names must be unique, and a file's chain must match its
//! size. Names keep their case and are compared with it. Permissions are those of a mount by root; times have no time
//! zone and are read as UTC.

mod error;
mod boot;
mod table;
mod dir;
mod author;

use std::sync::Arc;

use crate::source::{Extent, Map, ReadAt, SourceId};
use crate::tree::{Inode, InodeId, Kind, Metadata, Origin, OriginId, ROOT, Timestamp, Tree};
pub use author::{AuthorError, author};
use boot::Boot;
use dir::Entry;
pub use error::{ChainFault, EntryFault, FatError, FatPart};
use table::Chains;

/// Maximum number of files and directories. An ESP has dozens.
const MAX_ENTRIES: usize = 1 << 16;
/// Maximum length of a path in system calls (`PATH_MAX`), far more than the specification's 260. It also limits the
/// depth of a tree.
const MAX_PATH: usize = 4095;
/// Maximum total length of all paths, based on the specification's maximum.
const MAX_PATH_BYTES: usize = MAX_ENTRIES * 260;

/// The description of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatInfo {
    /// `FAT12`, `FAT16` or `FAT32`.
    pub kind: &'static str,
    /// May be empty.
    pub label: String,
    /// Serial number, shown as `XXXX-XXXX`.
    pub volume_id: u32,
    /// Bytes of a cluster.
    pub cluster_size: u32,
    /// Number of clusters for files.
    pub clusters: u32,
    pub free_clusters: u32,
}

/// Describes the volume.
pub fn probe(source: &dyn ReadAt) -> Result<FatInfo, FatError> {
    let boot = Boot::read(source)?;
    let mut chains = Chains::read(source, &boot)?;
    let free_clusters = chains.free();
    let (_, label) = dir::parse("/", &root_bytes(source, &boot, &mut chains)?, boot.wide())?;
    let label = label.or(boot.label).unwrap_or_default();
    Ok(FatInfo {
        kind: boot.kind.name(),
        label: String::from_utf8_lossy(&label).into_owned(),
        volume_id: boot.volume_id,
        cluster_size: boot.cluster_size,
        clusters: boot.clusters,
        free_clusters,
    })
}

/// Reads all files and directories of the volume.
pub fn read(source: Arc<dyn ReadAt>, origin: Origin) -> Result<Tree, FatError> {
    let boot = Boot::read(source.as_ref())?;
    let chains = Chains::read(source.as_ref(), &boot)?;
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), origin.clone());
    let origin = tree.add_origin(origin);
    let id = tree.sources_mut().add(source.clone());
    let mut reader = Reader { source: source.as_ref(), boot, chains, tree, id, origin, entries: 0, path_bytes: 0 };
    reader.read_all()?;
    Ok(reader.tree)
}

struct Reader<'a> {
    source: &'a dyn ReadAt,
    boot: Boot,
    chains: Chains,
    tree: Tree,
    id: SourceId,
    origin: OriginId,
    entries: usize,
    path_bytes: usize,
}

impl Reader<'_> {
    /// Walks all directories. Terminates, as no cluster is used twice.
    fn read_all(&mut self) -> Result<(), FatError> {
        let mut bytes = root_bytes(self.source, &self.boot, &mut self.chains)?;
        let mut next = Some((ROOT, String::new()));
        // Pending directories are stored as lists of clusters, since their contents may be as large as the volume.
        let mut todo: Vec<(InodeId, String, Vec<u32>)> = Vec::new();
        while let Some((dir, path)) = next {
            let (entries, _) = dir::parse(&path, &bytes, self.boot.wide())?;
            self.entries += entries.len();
            at_most(FatPart::Files, self.entries, MAX_ENTRIES)?;
            for entry in entries {
                let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
                self.path_bytes += path.len();
                at_most(FatPart::PathLen, path.len(), MAX_PATH)?;
                at_most(FatPart::PathsLen, self.path_bytes, MAX_PATH_BYTES)?;
                if self.tree.entry(dir, &entry.name).is_some() {
                    return Err(FatError::Entry { path, what: EntryFault::NameTwice });
                }
                let (id, chain) = self.insert(dir, &path, &entry)?;
                if entry.directory {
                    todo.push((id, path, chain));
                }
            }
            next = match todo.pop() {
                Some((id, path, chain)) => {
                    bytes = read_clusters(self.source, &self.boot, &chain)?;
                    Some((id, path))
                }
                None => None,
            };
        }
        Ok(())
    }

    /// Inserts an entry and returns its clusters.
    fn insert(&mut self, dir: InodeId, path: &str, entry: &Entry) -> Result<(InodeId, Vec<u32>), FatError> {
        let chain = if entry.directory {
            self.chains.directory(path, entry.first_cluster)?
        } else {
            let clusters = u64::from(entry.len).div_ceil(self.boot.cluster_size.into());
            self.chains.file(path, entry.first_cluster, clusters)?
        };
        let kind = if entry.directory { Kind::directory() } else { Kind::File(self.map(entry.len, &chain)) };
        let mode = if entry.read_only { 0o555 } else { 0o755 };
        let inode = Inode { meta: Metadata::root(mode, entry.mtime), kind, origin: self.origin };
        Ok((self.tree.insert(dir, &entry.name, inode)?, chain))
    }

    fn map(&self, len: u32, chain: &[u32]) -> Map {
        let mut map = Map::hole(len.into());
        let mut at = 0;
        for cluster in chain {
            let part = u64::from(self.boot.cluster_size).min(u64::from(len) - at);
            map.push(Extent { at, len: part, source: self.id, offset: self.boot.offset_of(*cluster) });
            at += part;
        }
        map
    }
}

fn at_most(what: FatPart, found: usize, limit: usize) -> Result<(), FatError> {
    let too_many = || FatError::Unsupported { what, found: found as u64, limit: limit as u64 };
    if found <= limit { Ok(()) } else { Err(too_many()) }
}

/// The root directory: a chain on FAT32, otherwise a separate region.
fn root_bytes(source: &dyn ReadAt, boot: &Boot, chains: &mut Chains) -> Result<Vec<u8>, FatError> {
    match boot.root_cluster {
        Some(cluster) => read_clusters(source, boot, &chains.directory("/", cluster)?),
        None => boot::read_bytes(source, boot.root_offset, boot.root_len),
    }
}

/// The clusters of a directory, up to the one with its end.
fn read_clusters(source: &dyn ReadAt, boot: &Boot, chain: &[u32]) -> Result<Vec<u8>, FatError> {
    let mut bytes = Vec::new();
    for cluster in chain {
        let start = bytes.len();
        bytes.extend(boot::read_bytes(source, boot.offset_of(*cluster), boot.cluster_size.into())?);
        if dir::ends(&bytes[start..]) {
            break;
        }
    }
    Ok(bytes)
}
