//! Writes a source as a compressed stream on all cores, and hashes stream and content in the same pass.
//!
//! Pieces of a fixed length are compressed independently, so the bytes do not depend on the number of threads:
//!
//! - gzip (RFC 1952): a single member without name and time. Each piece ends at a byte boundary (RFC 1951, 3.2.4: an
//!   empty stored block).
//! - Zstandard (RFC 8878): a frame for each piece, which states the length of its content.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;

use flate2::{Compress, Compression, Crc, FlushCompress};
use sha2::{Digest as _, Sha256};
use vmbake_disk::source::ReadAt;

use vmbake_common::digest::Digest;
use vmbake_common::parallel::for_each;

/// Bytes for each thread between synchronizations. With output and two turns in memory, 12 threads need 200 MiB.
const TURN: u64 = 4 << 20;
/// Limits the memory for many threads.
const MOST_THREADS: usize = 12;
/// Method deflate, no flags, no time, no extra flags; Unix.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// An empty last block with fixed codes.
const GZIP_LAST: [u8; 2] = [3, 0];
/// As for the clusters of qcow2.
const ZSTD_LEVEL: i32 = 3;

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// A written stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Length in bytes.
    pub len: u64,
    pub digest: Digest,
    /// Digest of the uncompressed content.
    pub content: Digest,
}

/// Why a stream was not written.
#[derive(Debug)]
pub enum PackError {
    /// The source cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
}

/// Writes `source` to `out`; `progress` receives the number of additional bytes of the source done.
pub fn write(
    source: &dyn ReadAt,
    packing: Packing,
    out: &mut dyn Write,
    threads: NonZeroUsize,
    progress: &dyn Fn(u64),
) -> Result<Packed, PackError> {
    let threads = threads.min(NonZeroUsize::new(MOST_THREADS).unwrap_or(NonZeroUsize::MIN));
    let step = packing.piece_len();
    // An empty source is a piece, too: a stream without a frame would not be zstd.
    let starts: Vec<u64> = (0..source.len().max(1)).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect();
    let per_turn = threads.get() * usize::try_from(TURN / step).unwrap_or(1);
    let mut stream = Stream { out, len: 0, hash: Sha256::new(), content: Sha256::new(), crc: Crc::new() };
    stream.begin(packing)?;
    std::thread::scope(|scope| {
        // The next pieces are compressed while these are hashed and written.
        let compress = |turn: &[u64]| {
            let turn = turn.to_vec();
            scope.spawn(move || for_each(turn, threads, |start| Piece::read(source, start, packing)))
        };
        let mut turns = starts.chunks(per_turn).map(compress);
        let mut next = turns.next();
        while let Some(thread) = next {
            // A panic in the thread is a bug, so it is propagated.
            let pieces = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            next = turns.next();
            for piece in pieces {
                progress(stream.append(&piece.map_err(PackError::Read)?)?);
            }
        }
        stream.end(packing, source.len())
    })
}

impl Packing {
    /// Length of the pieces in bytes: the loss at the borders is small.
    fn piece_len(self) -> u64 {
        match self {
            Self::Plain | Self::Gzip => 1 << 20,
            Self::Zstd => 4 << 20,
        }
    }
}

struct Stream<'a> {
    out: &'a mut dyn Write,
    len: u64,
    hash: Sha256,
    content: Sha256,
    crc: Crc,
}

impl Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        self.out.write_all(bytes).map_err(PackError::Write)?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn begin(&mut self, packing: Packing) -> Result<(), PackError> {
        if packing == Packing::Gzip { self.write(&GZIP_HEADER) } else { Ok(()) }
    }

    /// Appends a piece; returns the length of its content.
    fn append(&mut self, piece: &Piece) -> Result<u64, PackError> {
        self.write(piece.packed.as_ref().unwrap_or(&piece.content))?;
        self.content.update(&piece.content);
        self.crc.combine(&piece.crc);
        Ok(piece.content.len() as u64)
    }

    fn end(mut self, packing: Packing, source_len: u64) -> Result<Packed, PackError> {
        if packing == Packing::Gzip {
            self.write(&GZIP_LAST)?;
            self.write(&self.crc.sum().to_le_bytes())?;
            // The length modulo 2^32 (RFC 1952).
            let [low @ .., _, _, _, _] = source_len.to_le_bytes();
            self.write(&low)?;
        }
        let digest = |hash: Sha256| Digest::Sha256(hash.finalize().into());
        Ok(Packed { len: self.len, digest: digest(self.hash), content: digest(self.content) })
    }
}

struct Piece {
    content: Vec<u8>,
    /// `None` if it is the content.
    packed: Option<Vec<u8>>,
    /// Of the content, for gzip.
    crc: Crc,
}

impl Piece {
    fn read(source: &dyn ReadAt, start: u64, packing: Packing) -> io::Result<Self> {
        let len = usize::try_from(packing.piece_len().min(source.len() - start)).unwrap_or_default();
        let (mut content, mut crc) = (vec![0; len], Crc::new());
        source.read_exact_at(&mut content, start)?;
        let packed = match packing {
            Packing::Plain => None,
            Packing::Zstd => Some(zstd::bulk::compress(&content, ZSTD_LEVEL)?),
            Packing::Gzip => {
                crc.update(&content);
                Some(deflated(&content)?)
            }
        };
        Ok(Self { content, packed, crc })
    }
}

fn deflated(bytes: &[u8]) -> io::Result<Vec<u8>> {
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

    fn noise(len: usize) -> Vec<u8> {
        (0..u32::try_from(len).unwrap())
            .map(|i| if i / 70_000 % 2 == 0 { i.wrapping_mul(2_654_435_761).to_be_bytes()[0] } else { 7 })
            .collect()
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_threads() {
        for (packing, len) in [Packing::Plain, Packing::Gzip, Packing::Zstd]
            .into_iter()
            .flat_map(|packing| [0, 1, (1 << 20) - 1, 1 << 20, (9 << 20) + 17].map(|len| (packing, len)))
        {
            let bytes = noise(len);
            let packed = |threads: usize| {
                let mut found = Vec::new();
                let threads = NonZeroUsize::new(threads).unwrap();
                let Ok(packed) = write(&bytes, packing, &mut found, threads, &|_| ()) else { panic!("not written") };
                let expected =
                    Packed { len: found.len() as u64, digest: Digest::of(&found), content: Digest::of(&bytes) };
                assert_eq!(packed, expected, "{packing:?} {len}");
                found
            };
            let (one, three) = (packed(1), packed(3));
            assert_eq!(one, three, "{packing:?} {len}");
            let mut found = Vec::new();
            // A decoder of a single member: further members would remain.
            match packing {
                Packing::Plain => found = one,
                Packing::Gzip => drop(flate2::bufread::GzDecoder::new(&one[..]).read_to_end(&mut found).unwrap()),
                Packing::Zstd => drop(zstd::Decoder::new(&one[..]).unwrap().read_to_end(&mut found).unwrap()),
            }
            assert!(found == bytes, "{packing:?} {len}");
        }
    }
}
