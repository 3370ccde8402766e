//! Parallel compression of a source to a single gzip member (RFC 1952) without name and time.
//!
//! Pieces of a fixed length are compressed independently and end at a byte boundary (RFC 1951, 3.2.4: an empty stored
//! block), so their concatenation is a valid stream, and the bytes do not depend on the number of threads.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use flate2::{Compress, Compression, Crc, FlushCompress};
use sha2::{Digest as _, Sha256};
use vmbake_disk::source::ReadAt;

use vmbake_common::digest::Digest;
use vmbake_common::parallel::for_each;

/// Piece size in bytes: the loss at the borders is small, and two pieces per thread and turn are in memory.
const PIECE: u64 = 1 << 20;
/// Pieces for each thread between synchronizations. With 2 MiB for each, 16 threads need 256 MiB.
const TURN: usize = 8;
/// Limits the memory for many threads.
const MOST_THREADS: usize = 12;
/// Method deflate, no flags, no time, no extra flags; Unix.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// An empty last block with fixed codes.
const LAST: [u8; 2] = [3, 0];

/// Why compression failed.
pub(super) enum GzipError {
    /// The source cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
}

/// Compresses `source` into `file`; returns length and digest of the output. `progress` receives the number of
/// additional bytes done.
pub(super) fn write(
    source: &dyn ReadAt,
    file: &File,
    threads: NonZeroUsize,
    progress: &dyn Fn(u64),
) -> Result<(u64, Digest), GzipError> {
    let mut output = Output { file, len: 0, hash: Sha256::new() };
    output.write(&HEADER)?;
    let threads = threads.min(NonZeroUsize::new(MOST_THREADS).unwrap_or(NonZeroUsize::MIN));
    let step = usize::try_from(PIECE).unwrap_or(usize::MAX);
    let starts: Vec<u64> = (0..source.len()).step_by(step).collect();
    let mut crc = Crc::new();
    for turn in starts.chunks(threads.get() * TURN) {
        for piece in for_each(turn.to_vec(), threads, |start| Piece::read(source, start)) {
            let piece = piece.map_err(GzipError::Read)?;
            output.write(&piece.packed)?;
            crc.combine(&piece.crc);
            progress(piece.crc.amount().into());
        }
    }
    output.write(&LAST)?;
    output.write(&crc.sum().to_le_bytes())?;
    // The length modulo 2^32 (RFC 1952).
    let [low @ .., _, _, _, _] = source.len().to_le_bytes();
    output.write(&low)?;
    Ok((output.len, Digest::Sha256(output.hash.finalize().into())))
}

struct Output<'a> {
    file: &'a File,
    len: u64,
    hash: Sha256,
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), GzipError> {
        self.file.write_all(bytes).map_err(GzipError::Write)?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// A compressed piece, and the checksum of its contents.
struct Piece {
    packed: Vec<u8>,
    crc: Crc,
}

impl Piece {
    fn read(source: &dyn ReadAt, start: u64) -> io::Result<Self> {
        let len = usize::try_from(PIECE.min(source.len() - start)).unwrap_or_default();
        let mut bytes = vec![0; len];
        source.read_exact_at(&mut bytes, start)?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        Ok(Self { packed: compressed(&bytes)?, crc })
    }
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut deflate = Compress::new(Compression::default(), false);
    let mut packed = Vec::with_capacity(bytes.len() / 2 + 1024);
    loop {
        // Spare capacity shows that all output has been produced.
        if packed.len() == packed.capacity() {
            packed.reserve(bytes.len() / 4 + 1024);
        }
        let done = usize::try_from(deflate.total_in()).unwrap_or(usize::MAX);
        let rest = bytes.get(done..).unwrap_or_default();
        deflate.compress_vec(rest, &mut packed, FlushCompress::Sync)?;
        if deflate.total_in() == bytes.len() as u64 && packed.len() < packed.capacity() {
            return Ok(packed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn one_member_comes_of_all_pieces_whatever_the_threads() {
        let noise = |len: usize| -> Vec<u8> {
            (0..u32::try_from(len).unwrap())
                .map(|i| if i / 70_000 % 2 == 0 { i.wrapping_mul(2_654_435_761).to_be_bytes()[0] } else { 7 })
                .collect()
        };
        for len in [0, 1, (1 << 20) - 1, 1 << 20, (5 << 20) + 17] {
            let bytes = noise(len);
            let packed = |threads: usize| {
                let mut file = tempfile::tempfile().unwrap();
                let written = write(&bytes, &file, NonZeroUsize::new(threads).unwrap(), &|_| ());
                let Ok((written, digest)) = written else { panic!("{len}: not written") };
                let mut found = Vec::new();
                io::Seek::rewind(&mut file).unwrap();
                file.read_to_end(&mut found).unwrap();
                assert_eq!((found.len() as u64, Digest::of(&found)), (written, digest), "{len}");
                found
            };
            let (one, three) = (packed(1), packed(3));
            assert_eq!(one, three, "{len}");
            let mut found = Vec::new();
            // A decoder of a single member: further members would remain.
            flate2::bufread::GzDecoder::new(&one[..]).read_to_end(&mut found).unwrap();
            assert!(found == bytes, "{len}");
        }
    }
}
