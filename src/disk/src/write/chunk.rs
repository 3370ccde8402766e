//! A chunk of the disk, and its processing by a worker thread.

use std::fs::File;
use std::iter;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::block::{BLOCK_LEN, Block, PAGE, is_zero};
use super::clusters::{ClusterLocation, ClusterName, ClusterSum};
use super::compressor::{Compressor, OUTPUT_LEN};
use super::qcow2::CLUSTER;
use super::sink::Needs;
use super::{EarlierFile, WriteError};
use crate::disk::Disk;
use crate::source::ReadAt;

/// Chunk size in bytes: whole clusters and blocks, with enough work to outweigh the overhead.
pub const CHUNK: u64 = 1 << 20;

/// The parameters for processing chunks.
pub struct Job<'a> {
    pub disk: &'a Disk,
    pub needs: Needs,
    /// Sources of clusters that were compressed before.
    pub earlier: &'a [EarlierFile<'a>],
}

impl Job<'_> {
    /// Whether every byte is read, independent of earlier files.
    fn all_is_read(&self) -> bool {
        self.needs.blocks || self.needs.clusters.is_none()
    }
}

/// How a cluster of a chunk will be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// All zeros: not stored.
    Zero,
    /// Uncompressed.
    Plain,
    /// Compressed, as this range of `packed`.
    Compressed(Range<usize>),
}

impl Stored {
    /// End of the compressed cluster in `packed`.
    fn packed_end(&self) -> Option<usize> {
        if let Self::Compressed(range) = self { Some(range.end) } else { None }
    }
}

/// A cluster of a chunk.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub stored: Stored,
    /// The ID of its bytes, if any.
    pub name: Option<ClusterName>,
    /// BLAKE3 of the stored data.
    pub sum: ClusterSum,
}

/// A range of the disk in memory, with the data that its sink [needs](super::Sink::needs).
#[derive(Default)]
pub struct Chunk {
    at: u64,
    len: usize,
    /// Its bytes. If only clusters are needed, those of clusters that are not plain are undefined.
    pub(super) data: Vec<u8>,
    /// One for each cluster, if clusters are compressed.
    pub(super) clusters: Vec<Cluster>,
    /// Compressed clusters back to back, followed by space for the next.
    pub(super) packed: Vec<u8>,
    /// For each page whether it is all zeros, if blocks are needed.
    zeros: Vec<bool>,
    /// Hashes of the blocks that are not all zeros, if needed.
    hashes: Vec<[u8; 32]>,
}

impl Chunk {
    /// The blocks in it that are not all zeros, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let all = self.data.chunks(BLOCK_LEN).zip(self.zeros.chunks(BLOCK_LEN / PAGE));
        let data = (self.at / BLOCK_LEN as u64..).zip(all).filter(|(_, (_, zeros))| zeros.contains(&false));
        let hashes = self.hashes.iter().copied().map(Some).chain(iter::repeat(None));
        data.zip(hashes).map(|((number, (bytes, zeros)), hash)| Block { number, bytes, hash, zeros })
    }

    /// Initializes the chunk at `at` of a disk of `disk_len` bytes.
    pub(super) fn set_range(&mut self, at: u64, disk_len: u64) {
        self.at = at;
        // At most CHUNK, which fits.
        self.len = usize::try_from((disk_len - at).min(CHUNK)).unwrap_or_default();
        self.data.resize(self.len, 0);
    }

    /// Initializes its clusters with the lengths of stored data, to compute their locations.
    pub(super) fn set_stored(&mut self, lens: &[u32]) {
        let mut packed = 0;
        self.clusters.clear();
        for len in lens {
            let stored = stored_as(*len, packed);
            packed = stored.packed_end().unwrap_or(packed);
            self.clusters.push(Cluster { stored, name: None, sum: ClusterSum::default() });
        }
    }

    /// Frees memory that its clusters do not need.
    pub(super) fn shrink(&mut self) {
        let packed = self.clusters.iter().filter_map(|cluster| cluster.stored.packed_end()).max();
        self.packed.truncate(packed.unwrap_or(0));
        self.packed.shrink_to_fit();
        if self.clusters.iter().all(|cluster| cluster.stored != Stored::Plain) {
            self.data = Vec::new();
        }
    }

    /// Position on the disk.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes of the disk.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// End (exclusive) on the disk.
    pub(super) fn end(&self) -> u64 {
        self.at + self.len as u64
    }
}

/// The state of a worker thread.
pub struct Worker<'a> {
    job: &'a Job<'a>,
    compressor: Option<Compressor>,
    /// The last cluster of the disk, padded with zeros.
    padded: Vec<u8>,
}

impl<'a> Worker<'a> {
    pub fn new(job: &'a Job<'a>) -> Result<Self, WriteError> {
        let compressor = job.needs.clusters.map(Compressor::new).transpose();
        let compressor = compressor.map_err(|source| WriteError::Compress { offset: 0, source })?;
        Ok(Self { job, compressor, padded: Vec::new() })
    }

    /// Reads the chunk, hashes its blocks and compresses its clusters.
    pub fn process(&mut self, chunk: &mut Chunk) -> Result<(), WriteError> {
        if self.job.all_is_read() {
            self.read(chunk, 0..chunk.data.len())?;
        }
        if self.job.needs.blocks {
            self.blocks(chunk);
        }
        if self.job.needs.clusters.is_some() { self.clusters(chunk, self.all_known(chunk)) } else { Ok(()) }
    }

    fn read(&self, chunk: &mut Chunk, range: Range<usize>) -> Result<(), WriteError> {
        let offset = chunk.at + range.start as u64;
        let read = self.job.disk.read_exact_at(&mut chunk.data[range], offset);
        read.map_err(|source| WriteError::Read { offset, source })
    }

    /// Finds pages of zeros and hashes the other blocks.
    fn blocks(&self, chunk: &mut Chunk) {
        chunk.zeros.clear();
        chunk.zeros.extend(chunk.data.chunks(PAGE).map(is_zero));
        chunk.hashes.clear();
        if let Some(hash) = &self.job.needs.hash {
            chunk.hashes = chunk.blocks().map(|block| hash(&block)).collect();
        }
    }

    /// The stored length of each cluster, if all are in earlier files.
    pub fn look(&self, chunk: &Chunk) -> Option<Vec<u32>> {
        self.all_known(chunk).into_iter().map(|(_, known)| Some(known.place?.1.len)).collect()
    }

    fn all_known(&self, chunk: &Chunk) -> Vec<(Range<usize>, Known<'a>)> {
        let ranges = (0..chunk.len).step_by(CLUSTER).map(|start| start..chunk.len.min(start + CLUSTER));
        ranges.map(|range| (range.clone(), self.known(chunk, range))).collect()
    }

    fn clusters(&mut self, chunk: &mut Chunk, known: Vec<(Range<usize>, Known<'a>)>) -> Result<(), WriteError> {
        let len = chunk.len;
        // Allocated once for all chunks: stored clusters are smaller than the data, and one is being compressed.
        chunk.packed.resize(usize::try_from(CHUNK).unwrap_or(len) + OUTPUT_LEN, 0);
        for run in known.chunk_by(|(_, a), (_, b)| a.place.is_none() == b.place.is_none()) {
            if let [(first, Known { place: None, .. }), ..] = run
                && !self.job.all_is_read()
            {
                self.read(chunk, first.start..len.min(first.start + run.len() * CLUSTER))?;
            }
        }
        chunk.clusters.clear();
        let mut packed = 0;
        for (range, Known { name, place }) in known {
            let taken = place.and_then(|place| self.take_over(place, chunk, range.clone(), packed));
            let (stored, sum) = match taken {
                Some(taken) => taken,
                None => {
                    if place.is_some() && !self.job.all_is_read() {
                        self.read(chunk, range.clone())?;
                    }
                    self.compress(chunk, range, packed)?
                }
            };
            packed = stored.packed_end().unwrap_or(packed);
            chunk.clusters.push(Cluster { stored, name, sum });
        }
        Ok(())
    }

    /// Looks up a cluster before it is read.
    fn known(&self, chunk: &Chunk, range: Range<usize>) -> Known<'a> {
        let id = self.job.disk.content_id(chunk.at + range.start as u64..chunk.at + range.end as u64);
        let name = id.and_then(|id| id.0.first_chunk().copied());
        let find = |name| self.job.earlier.iter().find_map(|file| Some((file.file, file.clusters.find(name)?)));
        Known { name, place: name.as_ref().and_then(find) }
    }

    /// Copies a cluster from the earlier file; `None` if the data there have changed.
    fn take_over(
        &self,
        (file, place): (&File, ClusterLocation),
        chunk: &mut Chunk,
        range: Range<usize>,
        packed: usize,
    ) -> Option<(Stored, ClusterSum)> {
        let stored = stored_as(place.len, packed);
        let part = match &stored {
            Stored::Zero => return Some((stored, place.sum)),
            Stored::Plain if self.job.all_is_read() => return Some((stored, place.sum)),
            Stored::Plain => &mut chunk.data[range],
            Stored::Compressed(range) => &mut chunk.packed[range.clone()],
        };
        file.read_exact_at(part, place.at).ok()?;
        (sum(part) == place.sum).then_some((stored, place.sum))
    }

    fn compress(
        &mut self,
        chunk: &mut Chunk,
        range: Range<usize>,
        packed: usize,
    ) -> Result<(Stored, ClusterSum), WriteError> {
        let offset = chunk.at + range.start as u64;
        let cluster = &chunk.data[range];
        if is_zero(cluster) {
            return Ok((Stored::Zero, ClusterSum::default()));
        }
        let whole = if cluster.len() == CLUSTER {
            cluster
        } else {
            self.padded.clear();
            self.padded.extend_from_slice(cluster);
            self.padded.resize(CLUSTER, 0);
            &self.padded
        };
        let Some(compressor) = &mut self.compressor else { return Ok((Stored::Plain, sum(cluster))) };
        let len = compressor.compress(whole, &mut chunk.packed[packed..]);
        match len.map_err(|source| WriteError::Compress { offset, source })? {
            None => Ok((Stored::Plain, sum(cluster))),
            Some(len) => {
                let range = packed..packed + len;
                Ok((Stored::Compressed(range.clone()), sum(&chunk.packed[range])))
            }
        }
    }
}

fn sum(stored: &[u8]) -> ClusterSum {
    *blake3::hash(stored).as_bytes()
}

/// A cluster's name, and an earlier file with the location there.
struct Known<'a> {
    name: Option<ClusterName>,
    place: Option<(&'a File, ClusterLocation)>,
}

/// How a cluster is stored, given its stored length and the length of compressed ones before it.
fn stored_as(len: u32, packed: usize) -> Stored {
    match usize::try_from(len) {
        Ok(0) => Stored::Zero,
        Ok(len) if len < CLUSTER => Stored::Compressed(packed..packed + len),
        _ => Stored::Plain,
    }
}
