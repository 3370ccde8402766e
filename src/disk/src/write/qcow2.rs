//! qcow2 files: version 3, clusters of 64 KiB, compressed with zstd or zlib.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU. Big-endian; offsets are bytes of the file. After the header:
//! clusters in the order of the disk, each L2 table after its last cluster, then the L1 table and the reference counts.
//! The header is written last, so an incomplete file is not a valid image.
//!
//! As in QEMU, compressed clusters are stored back to back, may cross into the next host cluster, and each adds one to
//! the reference count of every host cluster that it touches. Unlike in QEMU, gaps between plain clusters are filled,
//! up to 16 MiB before the end.

mod following;
mod layout;
mod tables;

use std::fs::File;

use super::chunk::Chunk;
use super::file::OutputFile;
use super::sink::{Needs, Sink};
use super::{FileDigest, KnownFile, WriteError, Written, at_once};
use crate::image::{Backing, ClusterCompression, Format};
use following::Following;
pub use following::Plan;
use tables::{Bytes, Piece, Tables};

/// QEMU's default cluster size.
pub const CLUSTER: usize = 1 << CLUSTER_BITS;
const CLUSTER_BITS: u32 = 16;
/// As in QEMU, a cluster is stored compressed whenever that is smaller.
pub const MAX_COMPRESSED: usize = CLUSTER - 1;

const CLUSTER_LEN: u64 = CLUSTER as u64;

/// A qcow2 file that is being written.
pub struct Qcow2Writer<'a> {
    file: &'a File,
    output: OutputFile<'a>,
    compression: ClusterCompression,
    tables: Tables,
    known: Option<KnownFile>,
    following: Option<Following>,
}

impl<'a> Qcow2Writer<'a> {
    /// Starts a file; with a plan, its digest is computed while it is written.
    pub fn new(
        file: &'a File,
        disk_len: u64,
        compression: ClusterCompression,
        known: Option<KnownFile>,
        plan: Option<Plan>,
    ) -> Result<Self, WriteError> {
        let tables = Tables::new(disk_len, compression)?;
        let following = plan.map(|plan| Following::start(file, plan)).transpose()?;
        // Unwritten parts can be read as zeros.
        let len = following.as_ref().map_or(0, Following::file_len);
        let output = OutputFile::new(Format::Qcow2, file, len)?;
        Ok(Self { file, output, compression, tables, known, following })
    }

    /// Starts an overlay with these clusters of the disk, ascending.
    pub fn on_top(file: &'a File, disk_len: u64, backing: &Backing, own: Vec<u64>) -> Result<Self, WriteError> {
        let tables = Tables::on_top(disk_len, backing.clone(), own)?;
        let output = OutputFile::new(Format::Qcow2, file, 0)?;
        let compression = ClusterCompression::default();
        Ok(Self { file, output, compression, tables, known: None, following: None })
    }
}

impl Sink for Qcow2Writer<'_> {
    type Written = Written;
    type Error = WriteError;

    fn needs(&self) -> Needs {
        Needs::clusters(self.compression)
    }

    /// Appends the clusters of the next chunk of the disk.
    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        let pieces = self.tables.place(chunk);
        for Piece { at, bytes } in &pieces {
            let bytes = match bytes {
                Bytes::Plain(range) => &chunk.data[range.clone()],
                Bytes::Packed(range) => &chunk.packed[range.clone()],
                Bytes::Table(table) => table,
            };
            self.output.write(bytes, *at)?;
        }
        if let Some(following) = &mut self.following {
            following.wrote(&pieces);
        }
        Ok(())
    }

    /// Writes the tables and the header, syncs, and hashes the file unless its digest is known.
    fn finish(self) -> Result<Written, WriteError> {
        let Self { file, output, tables, known, following, .. } = self;
        let mut end = tables.finish();
        for Piece { at, bytes } in &end.tables {
            if let Bytes::Table(table) = bytes {
                output.write(table, *at)?;
            }
        }
        output.set_len(end.file_len)?;
        output.write(&end.header, 0)?;
        let known = known.filter(|known| known.file_len == end.file_len);
        let digest = || match (known, following.and_then(|following| following.finish(&end))) {
            (Some(known), _) => Ok(known.digest),
            (None, Some(digest)) => Ok(FileDigest::Sha256(digest)),
            (None, None) => following::whole(file, end.file_len).map(FileDigest::Sha256),
        };
        let (synced, digest) = at_once(|| output.finish(), digest)?;
        synced?;
        let digest = digest?;
        end.clusters.sort();
        Ok(Written { format: Format::Qcow2, digest, file_len: end.file_len, clusters: end.clusters })
    }
}

/// Converts a length or offset in memory to an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
