//! IDs of bytes, and a source with a known digest: its ranges get IDs without being read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::ReadAt;

// An ID is a digest with a prefix for its type, so that IDs of different types never collide.
/// The bytes themselves.
pub(super) const BYTES: &[u8] = b"bytes\0";
/// A range of something that has a digest.
const RANGE: &[u8] = b"range\0";
/// Pieces with ids, holes between them.
pub(super) const PIECES: &[u8] = b"pieces\0";

/// A digest of bytes, or of their origin, that identifies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId(pub [u8; 32]);

/// A source with an ID, from which those of its ranges are derived.
pub struct Identified {
    inner: Arc<dyn ReadAt>,
    id: ContentId,
}

impl Identified {
    /// Gives the bytes of `inner` a unique ID: a digest of their origin and of how they were derived from it.
    pub fn new(inner: Arc<dyn ReadAt>, id: ContentId) -> Self {
        Self { inner, id }
    }
}

impl ReadAt for Identified {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_exact_at(buf, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.inner.next_data(offset)
    }

    fn content_id(&self, range: Range<u64>) -> Option<ContentId> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len())?;
        let hash = Sha256::new_with_prefix(RANGE).chain_update(self.id.0);
        Some(ContentId(hash.chain_update(range.start.to_le_bytes()).chain_update(len.to_le_bytes()).finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Window;
    use super::*;

    #[test]
    fn ids_tell_where_bytes_come_from() {
        let bytes: Arc<dyn ReadAt> = Arc::new(b"0123456789".to_vec());
        let known: Arc<dyn ReadAt> = Arc::new(Identified::new(bytes.clone(), ContentId([1; 32])));
        let other = Identified::new(bytes.clone(), ContentId([2; 32]));
        let id = known.content_id(2..6);
        assert!(id.is_some());
        assert_eq!(known.content_id(2..6), id);
        for different in [
            known.content_id(2..7),
            known.content_id(3..6),
            known.content_id(0..0),
            other.content_id(2..6),
            bytes.content_id(2..6),
        ] {
            assert_ne!(different, id);
        }
        assert_eq!(Window::new(known.clone(), 1..9).unwrap().content_id(1..5), id);
        assert_eq!(
            bytes.content_id(2..6),
            b"2345".to_vec().content_id(0..4),
            "bytes in memory are what they are, at any offset"
        );
    }

    #[test]
    fn what_is_not_there_has_no_id() {
        let bytes: Arc<dyn ReadAt> = Arc::new(vec![1; 10]);
        let known: Arc<dyn ReadAt> = Arc::new(Identified::new(bytes.clone(), ContentId([1; 32])));
        let window = Window::new(known.clone(), 2..8).unwrap();
        #[allow(clippy::reversed_empty_ranges, reason = "that is refused, too")]
        let backwards = 5..4;
        for range in [0..11, 11..11, backwards] {
            assert_eq!(bytes.content_id(range.clone()), None, "{range:?}");
            assert_eq!(known.content_id(range), None);
        }
        assert_eq!(window.content_id(0..7), None, "what is outside the window");
        assert_eq!(window.content_id(u64::MAX..u64::MAX), None);
    }
}
