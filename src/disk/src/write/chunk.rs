//! One chunk of the disk, and what a worker thread does with it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use zstd::bulk::Compressor;

use super::qcow2::{CLUSTER, MAX_COMPRESSED};
use super::{WriteError, output_error};
use crate::disk::Disk;
use crate::image::Format;
use crate::source::ReadAt;

/// Bytes of a chunk: whole clusters, enough work to outweigh handing it over.
pub const CHUNK: u64 = 1 << 20;

/// Granularity of holes in raw files, as file systems have blocks of this size.
const BLOCK: usize = 4096;

/// Level 3 compresses 100 to 400 MB/s on a core; higher ones cost several times that for a few percent.
const LEVEL: i32 = 3;

static ZEROS: [u8; CLUSTER] = [0; CLUSTER];

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|part| part == &ZEROS[..part.len()])
}

/// What a worker makes of each chunk.
pub struct Job<'a> {
    pub disk: &'a Disk,
    /// Raw files to write to.
    pub raw: Vec<&'a File>,
    /// Whether clusters are compressed.
    pub compress: bool,
}

/// How a cluster of a chunk will be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Only zeros: not at all.
    Zero,
    /// As it is.
    Plain,
    /// Compressed, as this range of `packed`.
    Compressed(std::ops::Range<usize>),
}

/// A range of the disk in memory.
#[derive(Default)]
pub struct Chunk {
    at: u64,
    /// Its bytes.
    pub data: Vec<u8>,
    /// One for each cluster, when clusters are compressed.
    pub clusters: Vec<Cluster>,
    /// Compressed clusters one after the other.
    pub packed: Vec<u8>,
}

impl Chunk {
    /// Makes it the chunk at `at` of a disk of `disk_len` bytes.
    pub fn set_range(&mut self, at: u64, disk_len: u64) {
        self.at = at;
        // At most CHUNK, which fits.
        self.data.resize(usize::try_from((disk_len - at).min(CHUNK)).unwrap_or_default(), 0);
    }

    /// Position on the disk.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// End (exclusive) on the disk.
    pub fn end(&self) -> u64 {
        self.at + self.data.len() as u64
    }
}

/// One thread's share of a job.
pub struct Worker<'a> {
    job: &'a Job<'a>,
    zstd: Compressor<'static>,
    /// A last cluster that the disk fills only in part, padded with zeros.
    padded: Vec<u8>,
}

impl<'a> Worker<'a> {
    pub fn new(job: &'a Job<'a>) -> Result<Self, WriteError> {
        let zstd = Compressor::new(LEVEL).map_err(|source| WriteError::Compress { offset: 0, source })?;
        Ok(Self { job, zstd, padded: Vec::new() })
    }

    /// Reads the chunk, writes its raw parts and compresses its clusters.
    pub fn process(&mut self, chunk: &mut Chunk) -> Result<(), WriteError> {
        let read = self.job.disk.read_exact_at(&mut chunk.data, chunk.at);
        read.map_err(|source| WriteError::Read { offset: chunk.at, source })?;
        for file in &self.job.raw {
            write_blocks(file, chunk)?;
        }
        if self.job.compress { self.compress(chunk) } else { Ok(()) }
    }

    fn compress(&mut self, chunk: &mut Chunk) -> Result<(), WriteError> {
        let Chunk { at, data, clusters, packed } = chunk;
        clusters.clear();
        packed.clear();
        for (i, cluster) in data.chunks(CLUSTER).enumerate() {
            if is_zero(cluster) {
                clusters.push(Cluster::Zero);
                continue;
            }
            let whole = if cluster.len() == CLUSTER {
                cluster
            } else {
                self.padded.clear();
                self.padded.extend_from_slice(cluster);
                self.padded.resize(CLUSTER, 0);
                &self.padded
            };
            let start = packed.len();
            packed.resize(start + zstd::zstd_safe::compress_bound(CLUSTER), 0);
            let offset = *at + (i * CLUSTER) as u64;
            let len = self.zstd.compress_to_buffer(whole, &mut packed[start..]);
            let len = len.map_err(|source| WriteError::Compress { offset, source })?;
            let fits = len <= MAX_COMPRESSED;
            packed.truncate(if fits { start + len } else { start });
            clusters.push(if fits { Cluster::Compressed(start..packed.len()) } else { Cluster::Plain });
        }
        Ok(())
    }
}

/// Writes the runs of blocks that are not zero; the others stay holes.
fn write_blocks(file: &File, chunk: &Chunk) -> Result<(), WriteError> {
    let mut at = chunk.at;
    for run in chunk.data.chunks(BLOCK).collect::<Vec<_>>().chunk_by(|a, b| is_zero(a) == is_zero(b)) {
        let len: usize = run.iter().map(|block| block.len()).sum();
        if !is_zero(run[0]) {
            let start = usize::try_from(at - chunk.at).unwrap_or_default();
            let written = file.write_all_at(&chunk.data[start..start + len], at);
            written.map_err(|source| output_error(Format::Raw, "write", at, source))?;
        }
        at += len as u64;
    }
    Ok(())
}
