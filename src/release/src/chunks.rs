//! Chunks of a raw image: each is compressed to a zstd frame that states the length of its content.
//!
//! Chunks have 4 MiB up to a disk of 16 GiB, and twice as much whenever a disk would require more than 4,096 of them: a
//! longer manifest might exceed the limits of registries. Smaller chunks would cost more requests, larger ones more
//! data for a small change. Parts of the disk without data are not read; their frame depends only on the length.

use std::io;

use vmbake_disk::source::ReadAt;

use vmbake_common::digest::Digest;

/// Minimum length of a chunk in bytes.
const LEAST: u64 = 4 << 20;
/// Maximum number of chunks of an image.
pub const MAX_CHUNKS: u64 = 4096;
/// Maximum length of a chunk: for a disk of 512 GiB. Several are in memory at a time.
pub const MAX_CHUNK: u64 = 128 << 20;
/// Compression level: as fast as a gigabit line on two cores.
const LEVEL: i32 = 3;

/// The length of the chunks of a disk of `len` bytes; `None` if it is too long.
pub fn chunk_len(len: u64) -> Option<u64> {
    let mut chunk = LEAST;
    while len.div_ceil(chunk) > MAX_CHUNKS {
        chunk = chunk.checked_mul(2).filter(|chunk| *chunk <= MAX_CHUNK)?;
    }
    Some(chunk)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// SHA-256 of its content.
    pub content: Digest,
    pub bytes: Vec<u8>,
}

/// The chunk of `len` bytes at `offset`.
pub fn frame(disk: &dyn ReadAt, offset: u64, len: usize) -> io::Result<Frame> {
    let end = offset.saturating_add(len as u64);
    let mut content = vec![0; len];
    if disk.next_data(offset)?.is_some_and(|data| data.start < end) {
        disk.read_exact_at(&mut content, offset)?;
    }
    compress(&content)
}

fn compress(content: &[u8]) -> io::Result<Frame> {
    Ok(Frame { content: Digest::of(content), bytes: zstd::bulk::compress(content, LEVEL)? })
}

/// Whether a part of a disk has no data.
pub fn is_hole(disk: &dyn ReadAt, offset: u64, len: usize) -> io::Result<bool> {
    let end = offset.saturating_add(len as u64);
    Ok(disk.next_data(offset)?.is_none_or(|data| data.start >= end))
}

/// A chunk of zeros.
pub fn zeros(len: usize) -> io::Result<Frame> {
    compress(&vec![0; len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_with_the_disk() {
        for (len, chunk) in [(0, 4 << 20), (16 << 30, 4 << 20), ((16 << 30) + 1, 8 << 20), (512 << 30, 128 << 20)] {
            assert_eq!(chunk_len(len), Some(chunk), "{len}");
        }
        assert_eq!(chunk_len((512 << 30) + 1), None);
        assert_eq!(chunk_len(u64::MAX), None);
    }

    #[test]
    fn frames_say_how_long_their_content_is() {
        let frame = zeros(4 << 20).unwrap();
        assert_eq!(zstd::zstd_safe::get_frame_content_size(&frame.bytes).unwrap(), Some(LEAST));
        assert_eq!(frame.content, Digest::of(&vec![0; 4 << 20]));
        // With another libzstd, all chunks would differ, and nothing could be reused from registries.
        let pinned = "sha256:376d44ee7f91112da3ca7fc22ee68ce8ec9ae5bf0e3795a4e7a88dfa8db97006";
        assert_eq!(Digest::of(&frame.bytes).to_string(), pinned);
    }
}
