//! Fixed virtual hard disks: the disk, followed by a footer of one sector (Microsoft, "Virtual Hard Disk Image Format
//! Specification", version 1.0, "Hard Disk Footer Format"). Integers are big-endian.
//!
//! The footer equals that of `qemu-img convert -O vpc -o subformat=fixed,force_size=on`, as recommended by Azure,
//! except for its time stamp and unique ID, which are derived from the digest of the disk.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use vmbake_disk::disk::Disk;
use vmbake_disk::source::{Extent, Map, ReadAt, Sources};
use vmbake_disk::write::fsverity;

/// Maximum size of a disk, 2040 GiB, according to the specification.
pub(super) const MAX_LEN: u64 = 2040 << 30;

/// Size of the footer in bytes.
const FOOTER: usize = 512;
/// With this creator, readers take the size from `Current Size`; for others, qemu takes it from the geometry, which is
/// smaller.
const CREATOR: &[u8; 4] = b"qem2";
/// `Disk Geometry`: the maximum, which is independent of the size. 65535 cylinders, 16 heads, 255 sectors.
const GEOMETRY: [u8; 4] = [0xff, 0xff, 16, 255];
/// Bits of the digest for the time stamp: within 17 years from 2000, so never in the future.
const TIME_MASK: u32 = (1 << 29) - 1;

/// The image with its footer.
pub(super) fn disk(image: Arc<dyn ReadAt>, threads: NonZeroUsize) -> io::Result<Disk> {
    let len = image.len();
    let footer = footer(len, &fsverity(&*image, threads)?);
    let mut map = Map::hole(len + FOOTER as u64);
    let mut sources = Sources::default();
    let (image, footer) = (sources.add(image), sources.add(Arc::new(footer.to_vec())));
    map.push(Extent { at: 0, len, source: image, offset: 0 });
    map.push(Extent { at: len, len: FOOTER as u64, source: footer, offset: 0 });
    Ok(Disk::new(map, sources))
}

/// The footer of a disk of `len` bytes with that digest.
fn footer(len: u64, digest: &[u8; 32]) -> [u8; FOOTER] {
    let mut footer = [0; FOOTER];
    let mut put = |at: usize, bytes: &[u8]| footer[at..at + bytes.len()].copy_from_slice(bytes);
    let [.., a, b, c, d] = *digest;
    let time = u32::from_be_bytes([a, b, c, d]) & TIME_MASK;
    put(0, b"conectix");
    put(8, &2u32.to_be_bytes()); // Features: the reserved bit, always set.
    put(12, &0x0001_0000u32.to_be_bytes()); // File Format Version.
    put(16, &u64::MAX.to_be_bytes()); // Data Offset: none in a fixed disk.
    put(24, &time.to_be_bytes()); // Time Stamp: seconds since 2000.
    put(28, CREATOR);
    put(32, &0x0005_0003u32.to_be_bytes()); // Creator Version.
    put(36, b"Wi2k"); // Creator Host OS.
    put(40, &len.to_be_bytes()); // Original Size.
    put(48, &len.to_be_bytes()); // Current Size.
    put(56, &GEOMETRY);
    put(60, &2u32.to_be_bytes()); // Disk Type: fixed.
    put(68, &unique_id(digest));
    let sum: u32 = footer.iter().map(|byte| u32::from(*byte)).sum();
    footer[64..68].copy_from_slice(&(!sum).to_be_bytes()); // Checksum, counted as zeros.
    footer
}

/// A UUID of version 8 (RFC 9562, section 5.8) for a digest.
fn unique_id(digest: &[u8; 32]) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_what_it_was() {
        let footer = footer(3 << 30, &[0xab; 32]);
        let hex: Vec<String> =
            footer[..88].chunks(8).map(|part| part.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        let expected = [
            "636f6e6563746978",
            "0000000200010000",
            "ffffffffffffffff",
            "0bababab71656d32",
            "000500035769326b",
            "00000000c0000000",
            "00000000c0000000",
            "ffff10ff00000002",
            "ffffe0a2abababab",
            "abab8bababababab",
            "abababab00000000",
        ];
        assert_eq!(hex, expected);
        assert_eq!(footer[88..], [0; 424]);
    }
}
