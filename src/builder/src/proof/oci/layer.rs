//! Layers: what is stored and what it unpacks to, both checked in one pass.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::OciError;
use super::document::{Descriptor, LayerType, MediaType};
use crate::manifest::{Digest, Hasher};

/// The most that a layer may unpack to: what does not end is an attack.
const MAX_CONTENT: u64 = 64 << 30;

/// Checks that `input` has the digest and length of `layer`, and that its content has digest `diff_id`; tells the length
/// of the content.
pub fn check_layer(layer: &Descriptor, diff_id: &Digest, input: impl Read) -> Result<u64, OciError> {
    let digest = || Box::new(layer.digest);
    let mut stored = Hashed { input: input.take(layer.size.saturating_add(1)), hasher: layer.digest.hasher(), len: 0 };
    let failed = |source: io::Error| OciError::Blob { digest: digest(), source: source.into() };
    let content = {
        let plain: Box<dyn Read + '_> = match layer.media_type {
            MediaType::Layer(LayerType::Tar) => Box::new(&mut stored),
            MediaType::Layer(LayerType::Gzip) => Box::new(MultiGzDecoder::new(&mut stored)),
            MediaType::Layer(LayerType::Zstd) => Box::new(zstd::Decoder::new(&mut stored).map_err(failed)?),
            ref other => return Err(OciError::MediaType { digest: digest(), found: other.to_string() }),
        };
        diff_id.of_stream(plain.take(MAX_CONTENT))
    };
    // A tampered blob mostly does not unpack: its digest is the better reason, so the rest of it is read first.
    io::copy(&mut stored, &mut io::sink()).map_err(failed)?;
    if stored.len != layer.size {
        return Err(OciError::Size { digest: digest(), expected: layer.size, found: stored.len });
    }
    let found = stored.hasher.finish();
    if found != layer.digest {
        return Err(OciError::Digest { digest: digest(), found: Box::new(found) });
    }
    let (found, len) = content.map_err(failed)?;
    if found != *diff_id {
        let (expected, found) = (Box::new(*diff_id), Box::new(found));
        return Err(OciError::DiffId { digest: digest(), expected, found });
    }
    Ok(len)
}

/// Hashes and counts what is read through it.
struct Hashed<R> {
    input: R,
    hasher: Hasher,
    len: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.input.read(buffer)?;
        self.hasher.update(&buffer[..len]);
        self.len += len as u64;
        Ok(len)
    }
}
