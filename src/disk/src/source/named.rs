//! A source whose bytes are known by a digest: ranges of it get their names without being read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::ReadAt;

// What a name is a digest of begins with how it was made, so that no name of one kind can be one of another.
/// The bytes themselves.
pub(super) const BYTES: &[u8] = b"bytes\0";
/// A range of something that has a digest.
const RANGE: &[u8] = b"range\0";
/// Pieces with names, holes between them.
pub(super) const PIECES: &[u8] = b"pieces\0";

/// A source with a digest that tells all its bytes.
pub struct Named {
    inner: Arc<dyn ReadAt>,
    digest: [u8; 32],
}

impl Named {
    /// Says that nothing but the bytes of `inner` has `digest`: that of the file it was made from and of the way in which
    /// it was made.
    pub fn new(inner: Arc<dyn ReadAt>, digest: [u8; 32]) -> Self {
        Self { inner, digest }
    }
}

impl ReadAt for Named {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_exact_at(buf, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(offset)
    }

    fn name(&self, range: Range<u64>) -> Option<[u8; 32]> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len())?;
        let hash = Sha256::new_with_prefix(RANGE).chain_update(self.digest);
        Some(hash.chain_update(range.start.to_le_bytes()).chain_update(len.to_le_bytes()).finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Window;
    use super::*;

    #[test]
    fn names_tell_where_bytes_come_from() {
        let bytes: Arc<dyn ReadAt> = Arc::new(b"0123456789".to_vec());
        let named: Arc<dyn ReadAt> = Arc::new(Named::new(bytes.clone(), [1; 32]));
        let other = Named::new(bytes.clone(), [2; 32]);
        let name = named.name(2..6);
        assert!(name.is_some());
        assert_eq!(named.name(2..6), name);
        for different in [named.name(2..7), named.name(3..6), named.name(0..0), other.name(2..6), bytes.name(2..6)] {
            assert_ne!(different, name);
        }
        assert_eq!(Window::new(named.clone(), 1..9).unwrap().name(1..5), name);
        assert_eq!(
            bytes.name(2..6),
            b"2345".to_vec().name(0..4),
            "bytes in memory are what they are, wherever they stand"
        );
    }

    #[test]
    fn what_is_not_there_has_no_name() {
        let bytes: Arc<dyn ReadAt> = Arc::new(vec![1; 10]);
        let named: Arc<dyn ReadAt> = Arc::new(Named::new(bytes.clone(), [1; 32]));
        let window = Window::new(named.clone(), 2..8).unwrap();
        #[allow(clippy::reversed_empty_ranges, reason = "that is refused, too")]
        let backwards = 5..4;
        for range in [0..11, 11..11, backwards] {
            assert_eq!(bytes.name(range.clone()), None, "{range:?}");
            assert_eq!(named.name(range), None);
        }
        assert_eq!(window.name(0..7), None, "what is outside the window");
        assert_eq!(window.name(u64::MAX..u64::MAX), None);
    }
}
