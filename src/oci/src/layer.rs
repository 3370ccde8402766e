//! Verification of layers: the stored blob and its uncompressed content.

use std::io::{self, Read, Seek};

use flate2::read::MultiGzDecoder;

use super::OciError;
use super::document::{Descriptor, LayerType, MediaType};
use vmbake_common::digest::Digest;
use vmbake_common::message;

/// Maximum uncompressed size of a layer, against decompression bombs.
const MAX_CONTENT: u64 = 64 << 30;

/// Verifies that `input` has the digest and length of `layer`, and its content the digest `diff_id`; returns the length
/// of the content.
///
/// The input is read twice, so that decoders receive verified data only.
pub fn check_layer(layer: &Descriptor, diff_id: &Digest, mut input: impl Read + Seek) -> Result<u64, OciError> {
    let digest = || Box::new(layer.digest);
    let failed = |source: io::Error| OciError::Blob { digest: digest(), source: source.into() };
    let MediaType::Layer(kind) = layer.media_type else {
        return Err(OciError::MediaType { digest: digest(), found: layer.media_type.to_string() });
    };
    let stored = (&mut input).take(layer.size.saturating_add(1));
    let (found, len) = layer.digest.of_stream(stored).map_err(failed)?;
    if len != layer.size {
        return Err(OciError::Size { digest: digest(), expected: layer.size, found: len });
    }
    if found != layer.digest {
        return Err(OciError::Digest { digest: digest(), found: Box::new(found) });
    }
    input.rewind().map_err(failed)?;
    let stored = input.take(layer.size);
    let plain: Box<dyn Read + '_> = match kind {
        LayerType::Tar => Box::new(stored),
        LayerType::Gzip => Box::new(MultiGzDecoder::new(stored)),
        LayerType::Zstd => Box::new(zstd::Decoder::new(stored).map_err(failed)?),
    };
    let (found, len) = diff_id.of_stream(plain.take(MAX_CONTENT)).map_err(failed)?;
    if found != *diff_id {
        let (expected, found) = (Box::new(*diff_id), Box::new(found));
        return Err(OciError::Message(message!(
            "{}: uncompressed content has digest {found}, but the config states {expected}",
            digest()
        )));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, SeekFrom, Write};

    use super::*;

    /// Test data for a single or repeated read.
    struct Once<'a> {
        inner: Cursor<&'a [u8]>,
        rewound: &'a mut bool,
    }

    impl Read for Once<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.inner.read(buffer)
        }
    }

    impl Seek for Once<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            *self.rewound = true;
            self.inner.seek(to)
        }
    }

    #[test]
    fn nothing_is_unpacked_before_its_digest_holds() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&[b'x'; 100_000]).unwrap();
        let good = gzip.finish().unwrap();
        let diff_id = Digest::of(&[b'x'; 100_000]);
        let mut layer = Descriptor::unknown(Digest::of(&good));
        (layer.size, layer.media_type) = (good.len() as u64, MediaType::Layer(LayerType::Gzip));
        let check = |bytes: &[u8]| {
            let mut rewound = false;
            let result = check_layer(&layer, &diff_id, Once { inner: Cursor::new(bytes), rewound: &mut rewound });
            (result, rewound)
        };
        assert!(matches!(check(&good), (Ok(100_000), true)));
        let mut damaged = good.clone();
        damaged[20] ^= 1;
        assert!(matches!(check(&damaged), (Err(OciError::Digest { .. }), false)));
        assert!(matches!(check(&good[1..]), (Err(OciError::Size { .. }), false)));
        assert!(matches!(check(&[&good[..], b"x"].concat()), (Err(OciError::Size { .. }), false)));
    }
}
