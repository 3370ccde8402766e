//! Decompresses clusters: from at most the sectors in an L2 entry, which may include bytes of the next cluster, to one
//! whole cluster.

use std::io;
use std::sync::{Mutex, PoisonError};

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::image::ClusterCompression;

/// Frames that require a window larger than 8 MiB, which every decoder must support, are refused: a cluster has at most
/// 2 MiB, so it would waste memory.
const WINDOW_LOG_MAX: u32 = 23;

/// Decompresses clusters of one image, from several threads.
pub struct Decompressor {
    compression: ClusterCompression,
    /// Unused contexts.
    zstd: Mutex<Vec<Decoder<'static>>>,
}

impl Decompressor {
    pub fn new(compression: ClusterCompression) -> Self {
        Self { compression, zstd: Mutex::default() }
    }

    /// Decompresses `data` into `cluster`; ignores data after a full cluster.
    pub fn decompress(&self, data: &[u8], cluster: &mut [u8]) -> io::Result<()> {
        match self.compression {
            ClusterCompression::Zlib => inflate(data, cluster),
            ClusterCompression::Zstd => {
                let idle = self.idle().pop();
                let mut decoder = idle.map_or_else(new_zstd, Ok)?;
                decoder.reinit()?;
                unzstd(&mut decoder, data, cluster)?;
                self.idle().push(decoder);
                Ok(())
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Decoder<'static>>> {
        self.zstd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn inflate(data: &[u8], cluster: &mut [u8]) -> io::Result<()> {
    // Raw deflate: no zlib header, no checksum.
    let mut stream = flate2::Decompress::new(false);
    stream.decompress(data, cluster, flate2::FlushDecompress::Finish).map_err(io::Error::other)?;
    if stream.total_out() != cluster.len() as u64 {
        return Err(too_short(stream.total_out(), cluster.len()));
    }
    Ok(())
}

fn new_zstd() -> io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(decoder)
}

fn unzstd(decoder: &mut Decoder<'_>, data: &[u8], cluster: &mut [u8]) -> io::Result<()> {
    let len = cluster.len();
    let mut input = InBuffer::around(data);
    let mut output = OutBuffer::around(cluster);
    while output.pos() < len {
        let before = (input.pos(), output.pos());
        decoder.run(&mut input, &mut output)?;
        if (input.pos(), output.pos()) == before {
            return Err(too_short(output.pos() as u64, len));
        }
    }
    Ok(())
}

fn too_short(found: u64, expected: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("ends after {found} of {expected} bytes"))
}
