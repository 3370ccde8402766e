//! The tables of a qcow2 file, computed from the lengths of its clusters only.

use std::iter::{self, Peekable};
use std::ops::Range;
use std::vec::IntoIter;

use super::layout::{Layout, Refcounts};
use super::{CLUSTER, CLUSTER_BITS, CLUSTER_LEN, index};
use crate::image::{BACKING_FORMAT, Backing, ClusterCompression, EXTENSIONS_END, Format};
use crate::write::chunk::{Chunk, Stored};
use crate::write::{ClusterLocation, Clusters, WriteError};

/// Entries of an L2 table, of 8 bytes.
const L2_ENTRIES: usize = CLUSTER / 8;
/// Bytes of the disk that an L2 table covers.
const L2_REACH: u64 = (L2_ENTRIES * CLUSTER) as u64;
/// Limit of QEMU for the L1 table.
const MAX_L1_ENTRIES: u64 = (32 << 20) / 8;
/// Flag of a plain cluster or table with a reference count of exactly one.
const COPIED: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
/// Flag of a cluster that reads as zeros, independent of the backing file.
const ZERO: u64 = 1;
/// Bytes of the header before its extensions.
const HEADER_LEN: u64 = 112;
/// Lowest bit of the sector count in the entry of a compressed cluster.
const SECTORS_SHIFT: u32 = 62 - (CLUSTER_BITS - 8);

/// A part of the file that is written at once.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset in the file.
    pub at: u64,
    pub bytes: Bytes,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Of the data of a chunk.
    Plain(Range<usize>),
    /// Of the compressed clusters of a chunk.
    Packed(Range<usize>),
    /// A table or the header.
    Table(Vec<u8>),
}

/// The data after the last cluster.
pub struct End {
    /// The tables after it.
    pub tables: Vec<Piece>,
    /// The header of the file.
    pub header: Vec<u8>,
    pub file_len: u64,
    /// The clusters with content IDs, in the order of the disk.
    pub clusters: Clusters,
}

/// The tables of a file being written.
pub struct Tables {
    disk_len: u64,
    compression: ClusterCompression,
    layout: Layout,
    l1: Vec<u64>,
    /// The current L2 table.
    l2: Vec<u64>,
    l2_index: u64,
    clusters: Clusters,
    top: Option<Top>,
}

/// The state of an overlay.
struct Top {
    backing: Backing,
    /// Its clusters of the disk without an entry.
    own: Peekable<IntoIter<u64>>,
}

impl Tables {
    pub fn new(disk_len: u64, compression: ClusterCompression) -> Result<Self, WriteError> {
        let refuse = |reason| WriteError::Length { format: Format::Qcow2, len: disk_len, reason };
        if !disk_len.is_multiple_of(512) {
            return Err(refuse("it is not a multiple of 512, so QEMU would drop the last bytes"));
        }
        let l1_len = disk_len.div_ceil(L2_REACH);
        if l1_len > MAX_L1_ENTRIES {
            return Err(refuse("its L1 table would be larger than 32 MiB"));
        }
        let l1 = vec![0; usize::try_from(l1_len).map_err(|_| refuse("its L1 table does not fit into memory"))?];
        // The first cluster is the header's.
        let (layout, l2, clusters) = (Layout::new(1), vec![0; L2_ENTRIES], Clusters::default());
        Ok(Self { disk_len, compression, layout, l1, l2, l2_index: 0, clusters, top: None })
    }

    /// An overlay with these clusters of the disk, ascending; all others are in its backing file.
    pub fn on_top(disk_len: u64, backing: Backing, own: Vec<u64>) -> Result<Self, WriteError> {
        Ok(Self {
            top: Some(Top { backing, own: own.into_iter().peekable() }),
            ..Self::new(disk_len, ClusterCompression::default())?
        })
    }

    /// Allocates the clusters of the next chunk of the disk.
    pub fn place(&mut self, chunk: &Chunk) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (i, cluster) in chunk.clusters.iter().enumerate() {
            let start = i * CLUSTER;
            let guest = (chunk.at() + start as u64) / CLUSTER_LEN;
            self.zeros_before(guest, &mut pieces);
            let (at, len, entry) = match &cluster.stored {
                Stored::Zero => (0, 0, if self.take_own(guest) { ZERO } else { 0 }),
                Stored::Plain => {
                    let at = self.layout.clusters(1);
                    let end = chunk.len().min(start + CLUSTER);
                    pieces.push(Piece { at, bytes: Bytes::Plain(start..end) });
                    (at, CLUSTER, at | COPIED)
                }
                Stored::Compressed(range) => {
                    let len = range.len() as u64;
                    let at = self.layout.compressed(len);
                    packed(&mut pieces, at, range);
                    let more_sectors = (at + len - 1) / 512 - at / 512;
                    (at, range.len(), at | more_sectors << SECTORS_SHIFT | COMPRESSED)
                }
            };
            if let Some(name) = cluster.name {
                // At most a cluster's length.
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                self.clusters.push(name, ClusterLocation { at, len, sum: cluster.sum });
            }
            if entry != 0 {
                self.take_own(guest);
                self.enter(guest, entry, &mut pieces);
            }
        }
        pieces
    }

    /// Whether the cluster is the next one of the overlay, which is then removed from the list.
    fn take_own(&mut self, guest: u64) -> bool {
        self.top.as_mut().is_some_and(|top| top.own.next_if_eq(&guest).is_some())
    }

    /// Marks the clusters of the overlay before `guest` as zeros: no chunk had data for them.
    fn zeros_before(&mut self, guest: u64, pieces: &mut Vec<Piece>) {
        while let Some(zero) = self.top.as_mut().and_then(|top| top.own.next_if(|own| *own < guest)) {
            self.enter(zero, ZERO, pieces);
        }
    }

    /// Sets the entry of a cluster of the disk.
    fn enter(&mut self, guest: u64, entry: u64, pieces: &mut Vec<Piece>) {
        if guest / L2_ENTRIES as u64 != self.l2_index {
            self.close_l2(pieces);
            self.l2_index = guest / L2_ENTRIES as u64;
        }
        self.l2[index(guest % L2_ENTRIES as u64)] = entry;
    }

    /// Allocates and clears the current L2 table, unless it is empty.
    fn close_l2(&mut self, pieces: &mut Vec<Piece>) {
        if self.l2.iter().any(|entry| *entry != 0) {
            let at = self.layout.clusters(1);
            pieces.push(Piece { at, bytes: Bytes::Table(big_endian(&self.l2)) });
            self.l1[index(self.l2_index)] = at | COPIED;
            self.l2.fill(0);
        }
    }

    /// Allocates everything after the last cluster.
    pub fn finish(mut self) -> End {
        let mut tables = Vec::new();
        self.zeros_before(u64::MAX, &mut tables);
        self.close_l2(&mut tables);
        let l1_at = self.layout.clusters((self.l1.len() as u64 * 8).div_ceil(CLUSTER_LEN));
        tables.push(Piece { at: l1_at, bytes: Bytes::Table(big_endian(&self.l1)) });
        let refcounts = self.layout.finish();
        let header = self.header(l1_at, &refcounts);
        let Refcounts { blocks, blocks_at, table, table_at, file_len, .. } = refcounts;
        tables.push(Piece { at: blocks_at, bytes: Bytes::Table(blocks) });
        tables.push(Piece { at: table_at, bytes: Bytes::Table(big_endian(&table)) });
        End { tables, header, file_len, clusters: self.clusters }
    }

    /// The header as words of 64 bits, with its extensions, and for an overlay the name of its backing file.
    fn header(&self, l1_at: u64, refcounts: &Refcounts) -> Vec<u8> {
        let name = self.top.as_ref().map_or(&[][..], |top| top.backing.name().as_bytes());
        let extensions = self.top.as_ref().map_or(Vec::new(), |top| format_extension(top.backing.format()));
        // After the list of extensions, which ends with a word.
        let name_at = if name.is_empty() { 0 } else { HEADER_LEN + 8 * (extensions.len() as u64 + 1) };
        // The feature is required for types other than zlib, which is 0.
        let (feature, kind) = match self.compression {
            ClusterCompression::Zlib => (0, 0),
            ClusterCompression::Zstd => (1 << 3, 1),
        };
        let words = [
            0x5146_49fb_0000_0003,                               // magic, version
            name_at,                                             // backing_file_offset
            (name.len() as u64) << 32 | u64::from(CLUSTER_BITS), // backing_file_size, cluster_bits
            self.disk_len,                                       // size
            self.l1.len() as u64,                                // crypt_method, l1_size
            l1_at,                                               // l1_table_offset
            refcounts.table_at,                                  // refcount_table_offset
            refcounts.table_clusters << 32,                      // refcount_table_clusters, nb_snapshots
            0,                                                   // snapshots_offset
            feature,                                             // incompatible_features: compression type
            0,                                                   // compatible_features
            0,                                                   // autoclear_features
            4 << 32 | HEADER_LEN,                                // refcount_order (16 bits), header_length
            kind << 56,                                          // compression_type
        ];
        let end = u64::from(EXTENSIONS_END) << 32;
        [&big_endian(&words), &big_endian(&extensions), &big_endian(&[end]), name].concat()
    }
}

/// The header extension with the format of the backing file, whose name fits into a word.
fn format_extension(format: Format) -> Vec<u64> {
    let format = format.to_string();
    let text = format.bytes().chain(iter::repeat(0)).take(8).fold(0, |word, byte| word << 8 | u64::from(byte));
    vec![u64::from(BACKING_FORMAT) << 32 | format.len() as u64, text]
}

/// Compressed clusters that are adjacent in the chunk and in the file become one piece.
fn packed(pieces: &mut Vec<Piece>, at: u64, range: &Range<usize>) {
    match pieces.last_mut() {
        Some(Piece { at: start, bytes: Bytes::Packed(last) })
            if last.end == range.start && *start + last.len() as u64 == at =>
        {
            last.end = range.end;
        }
        _ => pieces.push(Piece { at, bytes: Bytes::Packed(range.clone()) }),
    }
}

fn big_endian(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
