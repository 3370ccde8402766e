//! Decompression into a temporary file, with bounds that a bomb meets before the disk is full.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::archive::{ArchiveError, Limits};
use super::headers::Headers;

/// Most memory of a decoder of xz, in bytes: `xz -9` asks for 65 MiB, a hostile header for 4 GiB.
const XZ_MEMORY: u64 = 256 << 20;

/// Opens `input` (from its start) as an uncompressed file: itself when no known compression is seen, else a temporary
/// file. gzip, xz and zstd are told by their magic numbers.
pub(super) fn spool(input: &File, limits: &Limits) -> Result<File, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let mut input = input.try_clone().map_err(read)?;
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let mut magic = [0; 6];
    let got = input.read(&mut magic).map_err(read)?;
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let format = match &magic[..got] {
        [0x1f, 0x8b, ..] => "gz",
        [0xfd, b'7', b'z', b'X', b'Z', 0] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zst",
        _ => return Ok(input),
    };
    let len = input.metadata().map_err(read)?.len();
    spool_stream(input, format, len, limits)
}

/// Decompresses the archive `input`, which has `len` bytes in `format` (a file name extension), into a temporary file.
pub(super) fn spool_stream(input: impl Read, format: &str, len: u64, limits: &Limits) -> Result<File, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let mut decoder: Box<dyn Read + '_> = match format {
        "" => Box::new(input),
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(input)),
        "xz" => {
            // A file may be several streams, as parallel compressors write it; nothing else may follow.
            let flags = liblzma::stream::CONCATENATED;
            let decoder = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
            Box::new(liblzma::read::XzDecoder::new_stream(input, decoder.map_err(|error| read(error.into()))?))
        }
        "zst" => Box::new(zstd::stream::read::Decoder::new(input).map_err(read)?),
        _ => return Err(ArchiveError::Compression { format: format.to_owned() }),
    };
    let limit = limits.bytes(len);
    let mut spool = tempfile::tempfile().map_err(|source| ArchiveError::Spool { dir: super::temporary(), source })?;
    let mut buffer = vec![0; 256 << 10];
    let mut headers = Headers::new(limits.members);
    let mut total: u64 = 0;
    loop {
        let count = match decoder.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(ArchiveError::Decompress { offset: total, source }),
        };
        total += count as u64;
        if total > limit {
            return Err(ArchiveError::Bomb { len, limit });
        }
        headers.feed(&buffer[..count])?;
        spool.write_all(&buffer[..count]).map_err(|source| ArchiveError::Spool { dir: super::temporary(), source })?;
    }
    spool.seek(SeekFrom::Start(0)).map_err(read)?;
    Ok(spool)
}
