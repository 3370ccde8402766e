//! Reads qcow2 images, version 2 and 3, with plain, zlib, zstd and zero clusters of any size.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU. A guest offset is looked up in two steps: the L1 table (in memory)
//! refers to L2 tables, whose entries refer to clusters. All tables are validated when the image is opened, so that an
//! image is either valid or refused, independent of the parts that are read. L2 tables and partially read clusters are
//! loaded on demand and kept in bounded caches. Every offset in the file is checked against its length before use;
//! nothing larger than the tables (never more than the file) and a few clusters is allocated.

mod backing;
mod cache;
mod check;
mod decode;
mod header;
mod structure;
mod table;

use std::ops::Range;
use std::sync::Arc;

use super::{ClusterCompression, ImageError, file::ImageFile};
pub use backing::{Backing, BackingNameError, END as EXTENSIONS_END, FORMAT as BACKING_FORMAT};
use cache::Cache;
use decode::Decompressor;
use header::Header;
pub use structure::Qcow2Structure;
use table::{L2Table, Mapping};

/// Size of the cache of L2 tables: 128 GiB of disk with 64 KiB clusters.
const L2_BUDGET: u64 = 16 << 20;
/// Size of the cache of decompressed clusters: files of one directory often share clusters.
const CLUSTER_BUDGET: u64 = 32 << 20;
/// Maximum clusters of a range of data: examining more each time would cost more than another call.
const MAX_RUN: usize = 256;

/// An opened qcow2 image.
pub struct Qcow2 {
    file: ImageFile,
    header: Header,
    l1: Vec<u64>,
    /// By offset in the file.
    l2: Cache<u64, L2Table>,
    /// By offset and length in the file.
    clusters: Cache<(u64, u64), Vec<u8>>,
    decompressor: Decompressor,
    /// Empty, unless the image was made to save space, or as an attack.
    shared: check::Shared,
}

impl Qcow2 {
    /// Whether the file has the magic number of qcow2.
    pub fn has_magic(file: &ImageFile) -> Result<bool, ImageError> {
        let mut magic = [0; header::MAGIC.len()];
        if file.len() < magic.len() as u64 {
            return Ok(false);
        }
        file.read_inside(&mut magic, 0)?;
        Ok(magic == header::MAGIC)
    }

    /// Reads the header and validates all tables.
    pub fn open(file: ImageFile) -> Result<Self, ImageError> {
        let header = Header::read(&file, false)?;
        Self::with_tables(file, header)
    }

    /// As [`Self::open`], for a file with a backing file.
    pub fn open_overlay(file: ImageFile) -> Result<(Self, Backing), ImageError> {
        let header = Header::read(&file, true)?;
        let backing = Backing::read(&file, &header)?;
        Ok((Self::with_tables(file, header)?, backing))
    }

    fn with_tables(file: ImageFile, header: Header) -> Result<Self, ImageError> {
        let l1 = table::read_words(&file, header.l1_table_offset, header.l1_len, Qcow2Structure::L1Table)?;
        let cluster_size = header.cluster_size();
        Ok(Self {
            shared: check::check(&file, &header, &l1)?,
            l1,
            l2: Cache::new(L2_BUDGET, cluster_size),
            clusters: Cache::new(CLUSTER_BUDGET, cluster_size),
            decompressor: Decompressor::new(header.compression),
            header,
            file,
        })
    }

    pub fn len(&self) -> u64 {
        self.header.size
    }

    /// Fills `buf` from `offset`; the caller has checked that both are inside the disk.
    pub fn read(&self, mut buf: &mut [u8], mut offset: u64) -> Result<(), ImageError> {
        while !buf.is_empty() {
            let (mapping, len) = self.run(offset, buf.len() as u64)?;
            let (part, rest) = buf.split_at_mut(index(len).min(buf.len()));
            let within = offset % self.cluster_size();
            match mapping {
                Mapping::Absent | Mapping::Zero => part.fill(0),
                Mapping::Plain(host) => self.file.read(part, host + within, Qcow2Structure::DataCluster)?,
                // A whole cluster is not cached, as it is usually read once, unless it is shared.
                Mapping::Compressed { offset, len }
                    if part.len() as u64 == self.cluster_size() && !self.shared.contains(&offset) =>
                {
                    self.decompress(offset, len, part)?;
                }
                Mapping::Compressed { offset, len } => {
                    let load = || {
                        let mut cluster = vec![0; index(self.cluster_size())];
                        self.decompress(offset, len, &mut cluster).map(|()| cluster)
                    };
                    let cluster = self.clusters.get((offset, len), load)?;
                    let within = index(within);
                    part.copy_from_slice(&cluster[within..within + part.len()]);
                }
            }
            offset += part.len() as u64;
            buf = rest;
        }
        Ok(())
    }

    /// The first range at or after `offset` that is not known to be zeros.
    pub fn next_data(&self, mut offset: u64) -> Result<Option<Range<u64>>, ImageError> {
        while offset < self.len() {
            // The result is limited to one L2 table, to bound the work of a call.
            let start = offset - offset % self.l2_reach();
            let end = start.saturating_add(self.l2_reach()).min(self.len());
            if let Some(table) = self.l2_table(offset)? {
                let holds = |i: usize| {
                    self.mapping(&table, i).map(|mapping| !matches!(mapping, Mapping::Absent | Mapping::Zero))
                };
                let last = index((end - start).div_ceil(self.cluster_size()));
                let mut first = index((offset - start) / self.cluster_size());
                while first < last && !holds(first)? {
                    first += 1;
                }
                if first < last {
                    let from = start + first as u64 * self.cluster_size();
                    let mut count = 1;
                    while count < MAX_RUN && first + count < last && holds(first + count)? {
                        count += 1;
                    }
                    let to = from.saturating_add(count as u64 * self.cluster_size()).min(end);
                    return Ok(Some(from.max(offset)..to));
                }
            }
            offset = end;
        }
        Ok(None)
    }

    /// The first run of the file's own clusters at or after `offset`, and whether they are zeros.
    pub fn next_own(&self, mut offset: u64) -> Result<Option<(Range<u64>, bool)>, ImageError> {
        while offset < self.len() {
            let (mapping, len) = self.run(offset, self.len() - offset)?;
            let end = offset + len;
            if mapping != Mapping::Absent {
                return Ok(Some((offset..end, mapping == Mapping::Zero)));
            }
            offset = end;
        }
        Ok(None)
    }

    /// The compression of its clusters.
    pub fn compression(&self) -> ClusterCompression {
        self.header.compression
    }

    /// The location of the cluster at `offset` of the disk, if it has 64 KiB and was compressed with zstd: offset and
    /// maximum length in the file.
    pub fn packed(&self, offset: u64) -> Result<Option<(u64, u64)>, ImageError> {
        if self.header.compression != ClusterCompression::Zstd || self.header.cluster_bits != 16 {
            return Ok(None);
        }
        Ok(match self.run(offset, 1)?.0 {
            Mapping::Compressed { offset, len } => Some((offset, len)),
            _ => None,
        })
    }

    /// Reads the first frame of a cluster found by [`Self::packed`]; empty if there is no frame.
    pub fn frame<'a>(&self, (offset, len): (u64, u64), buffer: &'a mut Vec<u8>) -> Result<&'a [u8], ImageError> {
        buffer.resize(index(len), 0);
        self.file.read(buffer, offset, Qcow2Structure::CompressedCluster)?;
        let frame = zstd::zstd_safe::find_frame_compressed_size(buffer).unwrap_or(0);
        Ok(&buffer[..frame.min(buffer.len())])
    }

    /// The location of the bytes at `offset`, and the length of the run (at most `most`).
    fn run(&self, offset: u64, most: u64) -> Result<(Mapping, u64), ImageError> {
        let Some(table) = self.l2_table(offset)? else {
            return Ok((Mapping::Absent, most.min(self.l2_reach() - offset % self.l2_reach())));
        };
        let mut at = index(offset % self.l2_reach() / self.cluster_size());
        let first = self.mapping(&table, at)?;
        let mut len = self.cluster_size() - offset % self.cluster_size();
        let mut next = first;
        while len < most && at + 1 < table.entries.len() {
            at += 1;
            next = match next {
                same @ (Mapping::Absent | Mapping::Zero) => same,
                Mapping::Plain(host) => Mapping::Plain(host + self.cluster_size()),
                Mapping::Compressed { .. } => break,
            };
            if self.mapping(&table, at)? != next {
                break;
            }
            len += self.cluster_size();
        }
        Ok((first, len.min(most)))
    }

    /// The L2 table for `offset`, if there is one.
    fn l2_table(&self, offset: u64) -> Result<Option<Arc<L2Table>>, ImageError> {
        let i = offset / self.l2_reach();
        // The L1 table covers the whole disk.
        let Some(entry) = self.l1.get(index(i)) else { return Ok(None) };
        let at = self.header.l1_entry(i);
        let Some(offset) = table::l2_offset(&self.file, &self.header, *entry, at)? else { return Ok(None) };
        self.l2.get(offset, || L2Table::read(&self.file, &self.header, offset)).map(Some)
    }

    /// The mapping of an entry, used for finding holes and for reading.
    fn mapping(&self, table: &L2Table, i: usize) -> Result<Mapping, ImageError> {
        table::mapping(&self.file, &self.header, table, i)
    }

    /// Decompresses at most `len` bytes at `offset` of the file into `cluster`.
    fn decompress(&self, offset: u64, len: u64, cluster: &mut [u8]) -> Result<(), ImageError> {
        let mut data = vec![0; index(len)];
        self.file.read(&mut data, offset, Qcow2Structure::CompressedCluster)?;
        let decompressed = self.decompressor.decompress(&data, cluster);
        decompressed.map_err(|source| self.file.bad_cluster(offset, source))
    }

    fn cluster_size(&self) -> u64 {
        self.header.cluster_size()
    }

    fn l2_reach(&self) -> u64 {
        self.header.l2_reach()
    }
}

/// Converts a length or offset in memory to an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
