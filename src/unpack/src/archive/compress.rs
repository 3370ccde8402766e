//! Decompresses to a file, with limits that stop a decompression bomb before the disk is full.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

use vmbake_common::message;
use vmbake_disk::write::PIECE;

use super::headers::Headers;
use super::{ArchiveError, ArchiveLimits};
use vmbake_common::digest::Digest;
use vmbake_store::store::{Decoded, DecodedForm, Store};

/// Most memory of a decoder of xz, in bytes: `xz -9` asks for 65 MiB, a hostile header for 4 GiB.
const XZ_MEMORY: u64 = 256 << 20;

/// The name of a zip file in errors.
pub const ZIP: &str = "zip file";

/// Formats that are not supported here, by their magic numbers.
const FOREIGN: [(&[u8], &str); 10] = [
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"\x04\x22\x4d\x18", "file compressed with LZ4"),
    (b"LZIP", "file compressed with lzip"),
    (b"\x1f\x9d", "file compressed with compress"),
    (b"!<arch>\n", "Debian package or static library"),
    (b"\xed\xab\xee\xdb", "RPM package"),
    (b"\x7fELF", "program"),
];

/// The compression of `input` as a file name extension, by its magic number; `None` if it has no known one. Formats in `FOREIGN` are
/// refused by name. `input` is at its start before and after.
pub(super) fn detect(mut input: &File) -> Result<Option<&'static str>, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let mut magic = [0; 8];
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let got = input.read(&mut magic).map_err(read)?;
    input.seek(SeekFrom::Start(0)).map_err(read)?;
    let magic = &magic[..got];
    if let Some((_, found)) = FOREIGN.iter().find(|(start, _)| magic.starts_with(start)) {
        return Err(ArchiveError::Foreign { found });
    }
    Ok(match magic {
        [0x1f, 0x8b, ..] => Some("gz"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zst"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bz2"),
        _ => None,
    })
}

/// Whether `file` starts with the header of a tar archive, plain or compressed. It is at its start before and after.
pub fn is_archive(mut file: &File) -> Result<bool, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let Ok(format) = detect(file) else { return Ok(false) };
    let mut block = [0; 512];
    let is_whole = decoder(file, format.unwrap_or_default())?.read_exact(&mut block).is_ok();
    file.rewind().map_err(read)?;
    let header = tar::Header::from_byte_slice(&block);
    let sum = block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) });
    Ok(is_whole && header.cksum().is_ok_and(|stated| stated == sum.sum::<u32>()))
}

/// Decompresses the archive `input`, which has `len` bytes in `format` (a file name extension), into a temporary file.
pub fn spool(input: impl Read, format: &str, len: u64, limits: &ArchiveLimits) -> Result<File, ArchiveError> {
    let mut output = tempfile::tempfile().map_err(no_spool)?;
    decompress(input, format, len, limits, &output)?;
    output.rewind().map_err(no_spool)?;
    Ok(output)
}

/// As [`spool`], for an archive that is part of a blob whose digest was proven: what was decompressed before is taken from the
/// store, and what is now is kept there.
pub fn spool_kept(
    mut input: impl Read + Seek,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
    place: (&Store, &Digest, DecodedForm),
) -> Result<File, ArchiveError> {
    kept(place, |output| {
        input.rewind().map_err(|source| ArchiveError::Read { offset: 0, source })?;
        decompress(&mut input, format, len, limits, output)
    })
}

/// The output of `write` for a blob: taken from the store, or written and kept there. A temporary file if the store has no room.
pub(super) fn kept(
    (store, blob, form): (&Store, &Digest, DecodedForm),
    mut write: impl FnMut(&File) -> Result<(), ArchiveError>,
) -> Result<File, ArchiveError> {
    let spool = match store.decoded(blob, form).map_err(no_spool)? {
        Decoded::Found(file) => return Ok(file),
        Decoded::Missing(spool) => spool,
    };
    match write(spool.file()) {
        Ok(()) => return spool.keep().map_err(no_spool),
        // The store may be on a full disk, and temporary files on another one.
        Err(ArchiveError::Spool { .. }) if spool.is_named() => drop(spool),
        Err(error) => return Err(error),
    }
    let mut output = tempfile::tempfile().map_err(no_spool)?;
    write(&output)?;
    output.rewind().map_err(no_spool)?;
    Ok(output)
}

pub(super) fn no_spool(source: io::Error) -> ArchiveError {
    ArchiveError::Spool { dir: std::env::temp_dir(), source }
}

fn decompress(
    input: impl Read,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
    output: &File,
) -> Result<(), ArchiveError> {
    let mut headers = Headers::new(limits.members);
    copy(decoder(input, format)?, len, limits, output, |bytes| headers.feed(bytes))
}

/// Decompresses the single file `input` of `len` bytes.
pub(super) fn decompress_file(
    input: impl Read,
    format: &str,
    len: u64,
    limits: &ArchiveLimits,
    output: &File,
) -> Result<(), ArchiveError> {
    copy(decoder(input, format)?, len, limits, output, |_| Ok(()))
}

fn decoder<'a>(input: impl Read + 'a, format: &str) -> Result<Box<dyn Read + 'a>, ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    Ok(match format {
        "" => Box::new(input),
        "gz" => Box::new(Gzip::new(input)),
        "xz" => {
            // A file may be several streams, as parallel compressors write it; nothing else may follow.
            let flags = liblzma::stream::CONCATENATED;
            let decoder = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
            Box::new(liblzma::read::XzDecoder::new_stream(input, decoder.map_err(|error| read(error.into()))?))
        }
        "bz2" => Box::new(bzip2::read::MultiBzDecoder::new(input)),
        "zst" => Box::new(zstd::stream::read::Decoder::new(input).map_err(read)?),
        _ => return Err(ArchiveError::Message(message!("unknown compression {format:?}"))),
    })
}

/// Writes the output of a decoder for `len` bytes of input, up to the limits; `inspect` sees all of it.
fn copy(
    mut decoder: impl Read,
    len: u64,
    limits: &ArchiveLimits,
    mut output: &File,
    mut inspect: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let limit = limits.bytes(len);
    let mut buffer = vec![0; PIECE];
    let mut total: u64 = 0;
    loop {
        let count = match decoder.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => {
                return Err(ArchiveError::Message(
                    message!("cannot decompress: failed after {total} bytes of output").by(source),
                ));
            }
        };
        total += count as u64;
        if total > limit {
            return Err(ArchiveError::Bomb { len, limit });
        }
        inspect(&buffer[..count])?;
        output.write_all(&buffer[..count]).map_err(no_spool)?;
    }
    Ok(())
}

/// The members of a gzip file (RFC 1952), one after the other. As with gzip(1), zeros after the last one are padding; other bytes are
/// refused, of which gzip(1) warns.
struct Gzip<R> {
    /// `None` at the end.
    member: Option<flate2::bufread::GzDecoder<BufReader<R>>>,
}

impl<R: Read> Gzip<R> {
    fn new(input: R) -> Self {
        Self { member: Some(flate2::bufread::GzDecoder::new(BufReader::with_capacity(PIECE, input))) }
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut rest) = self.member.take().map(flate2::bufread::GzDecoder::into_inner) else { break };
            match rest.fill_buf()?.first() {
                None => {}
                Some(0) => only_zeros(rest)?,
                Some(_) => self.member = Some(flate2::bufread::GzDecoder::new(rest)),
            }
        }
        Ok(0)
    }
}

fn only_zeros(mut input: impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the padding after the last member of the gzip file is not zero",
            ));
        }
        match bytes.len() {
            0 => return Ok(()),
            count => input.consume(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_after_gzip_are_padding() {
        let member = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let read = |file: Vec<u8>| {
            let mut text = String::new();
            Gzip::new(&file[..]).read_to_string(&mut text).map(|_| text).map_err(|error| error.to_string())
        };
        let both = [member("one "), member("two")].concat();
        assert_eq!(read(both.clone()), Ok("one two".to_owned()));
        assert_eq!(read([&both[..], &vec![0; PIECE + 1]].concat()), Ok("one two".to_owned()));
        assert!(read([&both[..], &[0, 0, 1]].concat()).unwrap_err().contains("is not zero"));
        assert!(read([&both[..], b"x"].concat()).is_err());
        assert!(read([&both[..], &[0], &member("three")[..]].concat()).is_err());
        assert!(read(both[..both.len() - 1].to_vec()).is_err());
        assert!(read(Vec::new()).is_err());
    }
}
