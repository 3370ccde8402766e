//! Compresses single clusters of qcow2 to independent streams or frames, with the same result on every machine.

use std::io;

use flate2::{Compress, Compression, FlushCompress, Status};

use super::qcow2::{CLUSTER, MAX_COMPRESSED};
use crate::image::ClusterCompression;

/// Level 3 of zstd compresses 100 to 400 MB/s on a core; higher ones cost several times that for a few percent.
const ZSTD_LEVEL: i32 = 3;

/// QEMU's level, the default of zlib.
const ZLIB_LEVEL: u32 = 6;

/// QEMU inflates with a window of 4 KiB: a stream with larger distances cannot be decompressed there.
const ZLIB_WINDOW_BITS: u8 = 12;

/// Maximum compressed size of a cluster with zstd (`ZSTD_COMPRESSBOUND`, which the crate does not export as a
/// constant).
pub const OUTPUT_LEN: usize = CLUSTER + (CLUSTER >> 8) + (((128 << 10) - CLUSTER) >> 11);

/// The compressor of one thread.
pub enum Compressor {
    /// Deflate.
    Zlib(Compress),
    /// Zstandard.
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub fn new(compression: ClusterCompression) -> io::Result<Self> {
        Ok(match compression {
            ClusterCompression::Zlib => {
                Self::Zlib(Compress::new_with_window_bits(Compression::new(ZLIB_LEVEL), false, ZLIB_WINDOW_BITS))
            }
            ClusterCompression::Zstd => Self::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        })
    }

    /// Compresses a cluster to the start of `out`, which has at least [`OUTPUT_LEN`] bytes; returns the length, or
    /// `None` if it is not smaller than the cluster.
    pub fn compress(&mut self, cluster: &[u8], out: &mut [u8]) -> io::Result<Option<usize>> {
        let len = match self {
            Self::Zlib(deflate) => {
                deflate.reset();
                let status = deflate.compress(cluster, out, FlushCompress::Finish).map_err(io::Error::other)?;
                // Without room for its end, the stream is larger than the cluster.
                let len = (status == Status::StreamEnd).then(|| usize::try_from(deflate.total_out()));
                len.transpose().map_err(io::Error::other)?
            }
            Self::Zstd(zstd) => Some(zstd.compress_to_buffer(cluster, out)?),
        };
        Ok(len.filter(|len| *len <= MAX_COMPRESSED))
    }
}
