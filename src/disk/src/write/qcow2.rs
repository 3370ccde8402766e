//! qcow2 files: version 3, clusters of 64 KiB, compressed with zstd.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU. Big-endian; offsets are bytes of the file. The file grows at its
//! end: clusters in the order of the disk, each L2 table after the last cluster that it names, then the L1 table and
//! the reference counts. The header comes last, so an incomplete file is not taken for an image.
//!
//! As in QEMU, compressed clusters stand back to back, may cross into the next host cluster, and each adds one to the
//! reference count of every host cluster that it touches. Unlike there, the gaps that plain clusters leave between them are
//! filled.

mod layout;

use std::fs::File;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::chunk::{Chunk, Stored};
use super::file::OutputFile;
use super::{Clusters, FileDigest, KnownFile, Place, WriteError, Written, at_once, output_error};
use crate::image::Format;
use layout::Layout;

/// QEMU's default cluster size.
pub const CLUSTER: usize = 1 << CLUSTER_BITS;
const CLUSTER_BITS: u32 = 16;
/// A cluster is stored compressed whenever that is smaller, as QEMU does it.
pub const MAX_COMPRESSED: usize = CLUSTER - 1;

const CLUSTER_LEN: u64 = CLUSTER as u64;
/// Entries of an L2 table, of 8 bytes.
const L2_ENTRIES: usize = CLUSTER / 8;
/// Bytes of the disk that an L2 table describes.
const L2_REACH: u64 = (L2_ENTRIES * CLUSTER) as u64;
/// QEMU reads no larger L1 table.
const MAX_L1_ENTRIES: u64 = (32 << 20) / 8;
/// What the reference count of a plain cluster or table being exactly one is told by.
const COPIED: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
/// Lowest bit of the sector count in the entry of a compressed cluster.
const SECTORS_SHIFT: u32 = 62 - (CLUSTER_BITS - 8);

/// A qcow2 file that is being written.
pub struct Qcow2Writer<'a> {
    file: &'a File,
    output: OutputFile<'a>,
    disk_len: u64,
    layout: Layout,
    l1: Vec<u64>,
    /// The L2 table that is being filled.
    l2: Vec<u64>,
    l2_index: u64,
    clusters: Clusters,
    known: Option<KnownFile>,
}

impl<'a> Qcow2Writer<'a> {
    pub fn new(file: &'a File, disk_len: u64, known: Option<KnownFile>) -> Result<Self, WriteError> {
        let refuse = |reason| WriteError::Length { format: Format::Qcow2, len: disk_len, reason };
        if !disk_len.is_multiple_of(512) {
            return Err(refuse("it is not a multiple of 512, and QEMU would drop the last bytes"));
        }
        let l1_len = disk_len.div_ceil(L2_REACH);
        if l1_len > MAX_L1_ENTRIES {
            return Err(refuse("its L1 table would be larger than 32 MiB"));
        }
        let l1 = vec![0; usize::try_from(l1_len).map_err(|_| refuse("its L1 table does not fit into memory"))?];
        // The first cluster is the header's.
        let (layout, l2, clusters) = (Layout::new(1), vec![0; L2_ENTRIES], Clusters::default());
        let output = OutputFile::new(Format::Qcow2, file, 0)?;
        Ok(Self { file, output, disk_len, layout, l1, l2, l2_index: 0, clusters, known })
    }

    /// Appends the clusters of the next chunk of the disk.
    pub fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        // Compressed clusters that stand back to back here and there are written at once.
        let mut run = Run::default();
        for (i, cluster) in chunk.clusters.iter().enumerate() {
            let start = i * CLUSTER;
            let (at, len, entry) = match &cluster.stored {
                Stored::Zero => (0, 0, 0),
                Stored::Plain => {
                    let at = self.layout.clusters(1);
                    self.write(&chunk.data[start..chunk.data.len().min(start + CLUSTER)], at)?;
                    (at, CLUSTER, at | COPIED)
                }
                Stored::Compressed(range) => {
                    let len = range.len() as u64;
                    let at = self.layout.compressed(len);
                    if !run.joins(range.start, at) {
                        self.write(&chunk.packed[run.packed.clone()], run.at)?;
                        run = Run { at, packed: range.start..range.start };
                    }
                    run.packed.end = range.end;
                    let more_sectors = (at + len - 1) / 512 - at / 512;
                    (at, range.len(), at | more_sectors << SECTORS_SHIFT | COMPRESSED)
                }
            };
            if let Some(name) = cluster.name {
                // At most a cluster's length.
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                self.clusters.push(name, Place { at, len, crc: cluster.crc });
            }
            if entry != 0 {
                self.enter((chunk.at() + start as u64) / CLUSTER_LEN, entry)?;
            }
        }
        self.write(&chunk.packed[run.packed], run.at)
    }

    /// Notes where a cluster of the disk is.
    fn enter(&mut self, guest: u64, entry: u64) -> Result<(), WriteError> {
        if guest / L2_ENTRIES as u64 != self.l2_index {
            self.flush_l2()?;
            self.l2_index = guest / L2_ENTRIES as u64;
        }
        self.l2[index(guest % L2_ENTRIES as u64)] = entry;
        Ok(())
    }

    /// Writes the tables and the header, syncs, and hashes the file unless its digest is known.
    pub fn finish(mut self) -> Result<Written, WriteError> {
        self.flush_l2()?;
        let l1_at = self.layout.clusters((self.l1.len() as u64 * 8).div_ceil(CLUSTER_LEN));
        self.write_words(&self.l1, l1_at)?;
        let refcounts = self.layout.finish();
        self.write(&refcounts.blocks, refcounts.blocks_at)?;
        self.write_words(&refcounts.table, refcounts.table_at)?;
        let file_len = refcounts.file_len;
        self.output.set_len(file_len)?;
        self.write(&self.header(l1_at, &refcounts), 0)?;
        let (file, output, known) = (self.file, self.output, self.known.filter(|known| known.file_len == file_len));
        let hashed = || known.map_or_else(|| hash(file, file_len).map(FileDigest::Sha256), |known| Ok(known.digest));
        let (synced, digest) = at_once(|| output.finish(), hashed)?;
        synced?;
        let digest = digest?;
        self.clusters.sort();
        Ok(Written { format: Format::Qcow2, digest, file_len, clusters: self.clusters })
    }

    /// Writes the current L2 table, if anything is in it, and empties it.
    fn flush_l2(&mut self) -> Result<(), WriteError> {
        if self.l2.iter().any(|entry| *entry != 0) {
            let at = self.layout.clusters(1);
            self.write_words(&self.l2, at)?;
            self.l1[index(self.l2_index)] = at | COPIED;
            self.l2.fill(0);
        }
        Ok(())
    }

    /// The header, as words of 64 bits, and the empty list of its extensions.
    fn header(&self, l1_at: u64, refcounts: &layout::Refcounts) -> Vec<u8> {
        let words = [
            0x5146_49fb_0000_0003,          // magic, version
            0,                              // backing_file_offset
            u64::from(CLUSTER_BITS),        // backing_file_size, cluster_bits
            self.disk_len,                  // size
            self.l1.len() as u64,           // crypt_method, l1_size
            l1_at,                          // l1_table_offset
            refcounts.table_at,             // refcount_table_offset
            refcounts.table_clusters << 32, // refcount_table_clusters, nb_snapshots
            0,                              // snapshots_offset
            1 << 3,                         // incompatible_features: compression type
            0,                              // compatible_features
            0,                              // autoclear_features
            4 << 32 | 112,                  // refcount_order (16 bits), header_length
            1 << 56,                        // compression_type: zstd
            0,                              // end of the header extensions
        ];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn write_words(&self, words: &[u64], at: u64) -> Result<(), WriteError> {
        self.write(&words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>(), at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        self.output.write(bytes, at)
    }
}

/// Compressed clusters of a chunk that stand at `at` of the file in one piece.
#[derive(Default)]
struct Run {
    at: u64,
    packed: std::ops::Range<usize>,
}

impl Run {
    fn joins(&self, packed: usize, at: u64) -> bool {
        self.packed.end == packed && self.at + self.packed.len() as u64 == at
    }
}

/// The header comes last and is hashed first, so the file is read once more.
fn hash(file: &File, len: u64) -> Result<[u8; 32], WriteError> {
    let mut hash = Sha256::new();
    // It stays in a core's own cache.
    let mut buf = vec![0; 64 << 10];
    let mut at = 0;
    while at < len {
        let part = index(len - at).min(buf.len());
        let read = file.read_exact_at(&mut buf[..part], at);
        read.map_err(|source| output_error(Format::Qcow2, "read back", at, source))?;
        hash.update(&buf[..part]);
        at += part as u64;
    }
    Ok(hash.finalize().into())
}

/// A length or position of something that is in memory.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
