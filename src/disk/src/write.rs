//! Writes a disk in one pass to a [`Sink`]: a [`Disk`] becomes complete, synced image files of one or several formats
//! with digests, or the output of another sink.
//!
//! The disk is split into chunks. Worker threads read each chunk with data once, hash the blocks of a raw file and
//! compress the clusters of qcow2; the calling thread passes the chunks to the sink in the order of the disk. So the
//! bytes of a file do not depend on the number of threads. At most `MAX_IN_FLIGHT` chunks are in memory, and those that
//! are compressed first.
//!
//! [`Earlier`] files save work without affecting the output: clusters whose bytes have a known ID are copied in
//! compressed form, and a file with a known digest is not hashed. If only qcow2 is written and little of it is new, the
//! new clusters are compressed first: then the layout is known before anything is written, and the file is hashed while
//! it is written.

mod sink;
mod pipeline;
mod chunk;
mod block;
mod clusters;
mod compressor;
mod precompress;
mod files;
mod file;
mod raw;
mod merkle;
mod verity;
mod measure;
mod dm_verity;
mod qcow2;
mod overlay;
mod patch;

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;

use crate::disk::Disk;
use crate::image::{ClusterCompression, Format};
pub use block::{BLOCK_LEN, Block};
pub use chunk::Chunk;
use chunk::Job;
pub use clusters::{ClusterLocation, ClusterName, ClusterSum, ClusterSums, Clusters};
pub use dm_verity::{DmVerity, HashTree};
pub use file::PIECE;
use files::Files;
pub use measure::{GroupHashes, fsverity};
pub use overlay::{Changed, differences, write_overlay};
pub use patch::{Patched, patch};
use precompress::Precompressed;
pub use sink::{HashBlock, Needs, Sink};

/// A file to write.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    pub format: Format,
    /// An empty file, open for reading and writing.
    pub file: &'a File,
    /// The compression of a qcow2 file; the same for all that are written at once.
    pub compression: ClusterCompression,
}

impl<'a> Output<'a> {
    /// A file of this format, whose clusters are compressed with zstd if it is qcow2.
    pub fn new(format: Format, file: &'a File) -> Self {
        Self { format, file, compression: ClusterCompression::default() }
    }
}

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub format: Format,
    /// Digest of the file: fs-verity of a raw file, SHA-256 of a qcow2 file.
    pub digest: FileDigest,
    /// Length of the file in bytes, including holes.
    pub file_len: u64,
    /// The clusters of a qcow2 file whose bytes have IDs.
    pub clusters: Clusters,
}

/// The digest of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileDigest {
    /// SHA-256 of its bytes.
    Sha256([u8; 32]),
    /// Its fs-verity digest: with SHA-256, blocks of 4096 bytes and no salt.
    Verity([u8; 32]),
}

/// Results of earlier disks written by the same program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier<'a> {
    /// Unchanged qcow2 files; if several have a cluster, the first one's is used.
    pub qcow2: &'a [EarlierFile<'a>],
    /// Files of this very disk.
    pub same: &'a [KnownFile],
}

/// A file whose digest is known before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    pub format: Format,
    /// The compression of a qcow2 file.
    pub compression: ClusterCompression,
    /// Digest of the file, as in [`Written`].
    pub digest: FileDigest,
    /// Length of the file in bytes.
    pub file_len: u64,
}

/// A qcow2 file with its clusters.
#[derive(Clone, Copy, Debug)]
pub struct EarlierFile<'a> {
    /// The file, open for reading.
    pub file: &'a File,
    pub clusters: &'a Clusters,
    pub compression: ClusterCompression,
}

/// Why a disk was not written. Offsets are bytes of the disk, or of the output if a format is named.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot read the disk at offset {offset:#x}")]
    Read { offset: u64, source: io::Error },
    #[error("the disk refers to {needed:#x} bytes of a source at offset {offset:#x}, which has only {len:#x}")]
    ShortSource {
        /// Offset in the source.
        offset: u64,
        needed: u64,
        len: u64,
    },
    #[error("a {format} image cannot hold a disk of {len} bytes: {reason}")]
    Length { format: Format, len: u64, reason: &'static str },
    #[error("qcow2 outputs that are written at once must have the same compression")]
    Compressions,
    #[error("the {format} output is not empty: it has {len} bytes")]
    NotEmpty { format: Format, len: u64 },
    #[error("cannot {operation} the {format} output at offset {offset:#x}")]
    Output {
        format: Format,
        /// A verb.
        operation: &'static str,
        offset: u64,
        source: io::Error,
    },
    #[error("cannot compress the disk at offset {offset:#x}")]
    Compress { offset: u64, source: io::Error },
    #[error("cannot start a writer thread")]
    Thread { source: io::Error },
    #[error("a writer thread ended early")]
    ThreadLost,
}

/// Chunks that are read, compressed or waiting at one time, in addition to finished ones: with at most 2 MiB for each,
/// 48 MiB.
const MAX_IN_FLIGHT: usize = 24;

/// Writes `disk` to each of `outputs` and syncs them; `progress` receives the number of additional bytes of the disk
/// done.
///
/// After an error, the outputs are incomplete.
pub fn write(
    disk: &Disk,
    outputs: &[Output<'_>],
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Written>, WriteError> {
    write_to(disk, Files::begin(disk, outputs, |_| None, None)?, threads, progress)
}

/// Writes the same bytes as [`write()`] with less work, using results of `earlier` disks.
pub fn write_again(
    disk: &Disk,
    outputs: &[Output<'_>],
    earlier: &Earlier<'_>,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Written>, WriteError> {
    check_sources(disk)?;
    // The length of a raw file is known, that of a qcow2 one only at its end.
    let fits = |known: &KnownFile| known.format != Format::Raw || known.file_len == disk.len();
    let compression = outputs.iter().find(|output| output.format == Format::Qcow2).map(|output| output.compression);
    let is_wanted = |known: &KnownFile, format| {
        known.format == format && (format == Format::Raw || Some(known.compression) == compression)
    };
    let known = |format| earlier.same.iter().find(|known| is_wanted(known, format) && fits(known)).copied();
    // Clusters with another compression cannot be reused.
    let qcow2: Vec<_> = earlier.qcow2.iter().filter(|file| Some(file.compression) == compression).copied().collect();
    // If all data are read in any case, they are not read twice.
    let only_qcow2 = outputs.iter().all(|output| output.format == Format::Qcow2);
    let looks = only_qcow2 && !qcow2.is_empty() && known(Format::Qcow2).is_none();
    let job = |needs| Job { disk, needs, earlier: &qcow2 };
    let needs = compression.filter(|_| looks).map(Needs::clusters);
    let mut precompressed =
        needs.map_or_else(|| Ok(Precompressed::default()), |needs| Precompressed::compress(&job(needs), threads))?;
    let files = Files::begin(disk, outputs, known, precompressed.plan.take())?;
    run(&job(files.needs()), precompressed, files, threads, progress)
}

/// Writes `disk` to a sink; `progress` receives the number of additional bytes of the disk done.
pub fn write_to<S: Sink>(
    disk: &Disk,
    sink: S,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<S::Written, S::Error> {
    check_sources(disk)?;
    let job = Job { disk, needs: sink.needs(), earlier: &[] };
    run(&job, Precompressed::default(), sink, threads, progress)
}

fn run<S: Sink>(
    job: &Job<'_>,
    precompressed: Precompressed,
    mut sink: S,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<S::Written, S::Error> {
    let mut done = 0;
    precompressed.run(job, threads, |chunk| {
        sink.append(chunk)?;
        progress(chunk.end() - done);
        done = chunk.end();
        Ok::<_, S::Error>(())
    })?;
    let written = sink.finish()?;
    progress(job.disk.len() - done);
    Ok(written)
}

/// Runs `concurrent` in a separate thread while `work` runs.
fn at_once<A: Send, B>(concurrent: impl FnOnce() -> A + Send, work: impl FnOnce() -> B) -> Result<(A, B), WriteError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, concurrent);
        let thread = thread.map_err(|source| WriteError::Thread { source })?;
        let done = work();
        Ok((thread.join().map_err(|_| WriteError::ThreadLost)?, done))
    })
}

/// A run beyond the end of its source could read as a hole, and silently corrupt the image.
fn check_sources(disk: &Disk) -> Result<(), WriteError> {
    for extent in disk.map().extents() {
        let len = disk.sources().get(extent.source).len();
        if extent.offset.checked_add(extent.len).is_none_or(|end| end > len) {
            return Err(WriteError::ShortSource { offset: extent.offset, needed: extent.len, len });
        }
    }
    Ok(())
}

fn output_error(format: Format, operation: &'static str, offset: u64, source: io::Error) -> WriteError {
    WriteError::Output { format, operation, offset, source }
}
