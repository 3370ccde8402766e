//! Layers: what is stored, and then what it unpacks to.

use std::io::{self, Read, Seek};

use flate2::read::MultiGzDecoder;

use super::OciError;
use super::document::{Descriptor, LayerType, MediaType};
use vmbake_common::digest::Digest;
use vmbake_common::message;

/// The most that a layer may unpack to: what does not end is an attack.
const MAX_CONTENT: u64 = 64 << 30;

/// Checks that `input` has the digest and length of `layer`, and that its content has digest `diff_id`; tells the length
/// of the content.
///
/// It is read twice: no decoder sees a byte before the digest of all of them holds.
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
            "{}: its content has digest {found}, the config says {expected}",
            digest()
        )));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, SeekFrom, Write};

    use super::*;

    /// Bytes that tell whether they were read once or again.
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
