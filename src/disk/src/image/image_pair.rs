//! Compares clusters of two images with as little decompression as possible.

use std::io;

use super::{Image, ImageError, Inner, as_io};
use crate::source::ReadAt;

/// Bytes of a cluster.
const CLUSTER: usize = 64 << 10;

/// Two images to compare.
pub(crate) struct ImagePair<'a> {
    pub(crate) old: &'a Image,
    pub(crate) new: &'a Image,
    /// Whether the compressed data at these offsets of the files are known to be equal.
    pub(crate) known: &'a (dyn Fn(u64, u64) -> bool + Sync),
}

/// Memory for one cluster of each.
#[derive(Default)]
pub(crate) struct PairBuffers(Vec<u8>, Vec<u8>);

impl ImagePair<'_> {
    /// Whether the cluster at `at` is equal in both; after the end of an image there are zeros.
    pub(crate) fn is_same(&self, at: u64, buffers: &mut PairBuffers) -> io::Result<bool> {
        if self.is_stored_alike(at, buffers).map_err(as_io)? {
            return Ok(true);
        }
        let PairBuffers(old, new) = buffers;
        read(self.old, at, old)?;
        read(self.new, at, new)?;
        Ok(old == new)
    }

    /// Whether both have the same compressed bytes there, and so the same contents.
    fn is_stored_alike(&self, at: u64, buffers: &mut PairBuffers) -> Result<bool, ImageError> {
        let (Inner::Qcow2(old), Inner::Qcow2(new)) = (&self.old.inner, &self.new.inner) else { return Ok(false) };
        if at >= old.len().min(new.len()) {
            return Ok(false);
        }
        let (Some(in_old), Some(in_new)) = (old.packed(at)?, new.packed(at)?) else { return Ok(false) };
        if (self.known)(in_old.0, in_new.0) {
            return Ok(true);
        }
        let PairBuffers(a, b) = buffers;
        let (a, b) = (old.frame(in_old, a)?, new.frame(in_new, b)?);
        Ok(!a.is_empty() && a == b)
    }
}

/// Fills `buffer` with the cluster at `at`.
fn read(image: &Image, at: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let len = usize::try_from(image.len().saturating_sub(at)).map_or(CLUSTER, |left| left.min(CLUSTER));
    buffer.clear();
    buffer.resize(CLUSTER, 0);
    if len == 0 { Ok(()) } else { image.read_exact_at(&mut buffer[..len], at) }
}
