//! Decompresses a module. The magic number determines the format, as in kmod.

use std::io::{self, Read};

use crate::error::{KmodError, unsupported};

/// Memory limit of the xz decoder, in bytes: modules of Linux need 2 MiB, `xz -9` 65 MiB, a hostile header 4 GiB.
const XZ_MEMORY: u64 = 256 << 20;
/// Limit of a decompressed module, in bytes: the largest of Debian has 12 MiB, with debug information about 100 MiB.
const MAX_LEN: u64 = 512 << 20;
/// Typical compression ratio, to allocate once.
const RATIO: usize = 5;

/// The content of `bytes`, the file at `path`.
pub fn decompress(bytes: Vec<u8>, path: &str) -> Result<Vec<u8>, KmodError> {
    let failed = |source| KmodError::Read { path: path.to_owned(), source };
    let capacity = bytes.len().saturating_mul(RATIO);
    match bytes[..] {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
            let stream = stream.map_err(|error| failed(error.into()))?;
            collect(liblzma::bufread::XzDecoder::new_stream(&bytes[..], stream), capacity).map_err(failed)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            // kmod 34 reads such files as modules without symbols.
            if !matches!(zstd::zstd_safe::get_frame_content_size(&bytes), Ok(Some(_)))
                || zstd::zstd_safe::find_frame_compressed_size(&bytes) != Ok(bytes.len())
            {
                return Err(unsupported(path, "zstd that is not one frame with the length of its content"));
            }
            let decoder = zstd::stream::read::Decoder::with_buffer(&bytes[..]).map_err(failed)?;
            collect(decoder, capacity).map_err(failed)
        }
        [0x1f, 0x8b, ..] => Err(unsupported(path, "gzip, which Debian's kmod does not support")),
        _ => Ok(bytes),
    }
}

fn collect(decoder: impl Read, capacity: usize) -> io::Result<Vec<u8>> {
    let mut output = Vec::with_capacity(capacity);
    decoder.take(MAX_LEN).read_to_end(&mut output)?;
    if output.len() as u64 == MAX_LEN {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {MAX_LEN} bytes decompressed")));
    }
    Ok(output)
}
