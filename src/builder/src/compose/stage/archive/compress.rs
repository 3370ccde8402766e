//! Decompression into a file, with bounds that a bomb meets before the disk is full.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use vmbake_disk::write::PIECE;

use super::headers::Headers;
use super::{ArchiveError, ArchiveLimits};
use crate::digest::Digest;
use crate::supply::store::{Decoded, DecodedForm, Store};

/// Most memory of a decoder of xz, in bytes: `xz -9` asks for 65 MiB, a hostile header for 4 GiB.
const XZ_MEMORY: u64 = 256 << 20;

/// The compression of `input` as a file name extension, told by magic numbers; `None` where no known one is seen. `input` is
/// at its start before and after.
pub(super) fn detect(mut input: &File) -> Result<Option<&'static str>, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let mut magic = [0; 6];
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let got = input.read(&mut magic).map_err(read)?;
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    Ok(match &magic[..got] {
        [0x1f, 0x8b, ..] => Some("gz"),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Some("xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zst"),
        _ => None,
    })
}

/// Decompresses the archive `input`, which has `len` bytes in `format` (a file name extension), into a temporary file.
pub(in crate::compose::stage) fn spool(
    input: impl Read,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
) -> Result<File, ArchiveError> {
    let mut output = tempfile::tempfile().map_err(no_spool)?;
    decompress(input, format, len, limits, &output)?;
    output.rewind().map_err(no_spool)?;
    Ok(output)
}

/// As [`spool`], for an archive that is part of a blob whose digest was proven: what was decompressed before is taken from the
/// store, and what is now is kept there.
pub(in crate::compose::stage) fn spool_kept(
    mut input: impl Read + Seek,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
    (store, blob, form): (&Store, &Digest, DecodedForm),
) -> Result<File, ArchiveError> {
    let spool = match store.decoded(blob, form).map_err(no_spool)? {
        Decoded::Found(file) => return Ok(file),
        Decoded::Missing(spool) => spool,
    };
    match decompress(&mut input, format, len, limits, spool.file()) {
        Ok(()) => return spool.keep().map_err(no_spool),
        // The store may be on a full disk, and temporary files on another one.
        Err(ArchiveError::Spool { .. }) if spool.is_named() => drop(spool),
        Err(error) => return Err(error),
    }
    input.rewind().map_err(|source| ArchiveError::Read { offset: 0, source })?;
    self::spool(input, format, len, limits)
}

fn no_spool(source: io::Error) -> ArchiveError {
    ArchiveError::Spool { dir: std::env::temp_dir(), source }
}

fn decompress(
    input: impl Read,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
    mut output: &File,
) -> Result<(), ArchiveError> {
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
    let mut buffer = vec![0; PIECE];
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
        output.write_all(&buffer[..count]).map_err(no_spool)?;
    }
    Ok(())
}
