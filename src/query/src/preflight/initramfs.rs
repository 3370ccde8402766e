//! Contents of an initramfs: one or more concatenated cpio archives, separated by zeros, each optionally compressed
//! (Linux, Documentation/driver-api/early-userspace/buffer-format.rst). Read as a stream; contents are skipped.
//!
//! Format of the archives: "newc", magic 070701 or 070702, numbers of eight hexadecimal digits, names and contents padded to 4 bytes.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use vmbake_common::hint::Hint;

/// Maximum unpacked size: many times what boot loaders accept.
const MAX_UNPACKED: u64 = 2 << 30;
/// Maximum length of a file name, as in Linux.
const MAX_NAME: u64 = 4096;
/// Maximum number of modules; kernels have some 5,000.
const MAX_MODULES: usize = 1 << 16;
/// Script of Debian's cloud-initramfs-growroot.
const GROWROOT: &[u8] = b"scripts/local-bottom/growroot";
/// Name of an archive's last entry.
const TRAILER: &[u8] = b"TRAILER!!!";
/// Lengths of the magic number and of the header after it.
const MAGIC: usize = 6;
const HEADER: usize = 104;

/// Error while reading an initramfs.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    #[error("cannot read the initramfs")]
    Read(#[from] io::Error),
    #[error("compressed with {0}: only gzip, xz and zstd are supported")]
    Unsupported(&'static str),
    #[error("expected a cpio archive, found {0:02x?}")]
    Magic([u8; MAGIC]),
    #[error("corrupt cpio header: {0}")]
    Header(&'static str),
    #[error("unpacked size exceeds {MAX_UNPACKED} bytes")]
    TooLong,
    #[error("more than {MAX_MODULES} modules")]
    Modules,
}

impl Hint for InitramfsError {
    vmbake_common::causes!(Read);
}

#[derive(Debug, Default)]
pub(super) struct Initramfs {
    /// Names of its modules, normalized by [`module`].
    pub(super) modules: BTreeSet<String>,
    /// Whether it grows the root partition.
    pub(super) grows_root: bool,
    /// Number of bytes that may still be unpacked.
    left: u64,
}

impl Initramfs {
    pub(super) fn read(input: impl Read) -> Result<Self, InitramfsError> {
        let mut found = Self { left: MAX_UNPACKED, ..Self::default() };
        archives(&mut BufReader::new(input), true, &mut found)?;
        Ok(found)
    }
}

/// The module name of a file, with `_` for `-`; `None` for other files.
pub(super) fn module(path: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(path.rsplit(|byte| *byte == b'/').next()?).ok()?;
    let name = [".xz", ".zst", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    Some(name.strip_suffix(".ko")?.replace('-', "_"))
}

/// Reads archives until the end of input; compressed ones only at the top level (`outside`).
fn archives(input: &mut dyn BufRead, outside: bool, found: &mut Initramfs) -> Result<(), InitramfsError> {
    while skip_zeros(input)? {
        let mut magic = [0; MAGIC];
        input.read_exact(&mut magic)?;
        let again = Cursor::new(magic).chain(&mut *input);
        let unpacked: Box<dyn Read + '_> = match magic {
            [b'0', b'7', b'0', b'7', b'0', b'1' | b'2'] => {
                archive(input, found)?;
                continue;
            }
            [0x1f, 0x8b, ..] if outside => Box::new(flate2::bufread::GzDecoder::new(again)),
            [0xfd, b'7', b'z', b'X', b'Z', 0] if outside => Box::new(liblzma::bufread::XzDecoder::new(again)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] if outside => {
                Box::new(zstd::stream::read::Decoder::with_buffer(again)?.single_frame())
            }
            [0x02, 0x21, 0x4c, 0x18, ..] => return Err(InitramfsError::Unsupported("lz4")),
            [b'B', b'Z', b'h', ..] => return Err(InitramfsError::Unsupported("bzip2")),
            [0x5d, 0, 0, ..] => return Err(InitramfsError::Unsupported("lzma")),
            [0x89, b'L', b'Z', b'O', ..] => return Err(InitramfsError::Unsupported("lzo")),
            _ => return Err(InitramfsError::Magic(magic)),
        };
        let mut unpacked = BufReader::new(unpacked.take(found.left));
        let read = archives(&mut unpacked, false, found);
        found.left = unpacked.get_ref().limit();
        if found.left == 0 {
            return Err(InitramfsError::TooLong);
        }
        read?;
    }
    Ok(())
}

/// Skips zeros; returns whether more data follows.
fn skip_zeros(input: &mut dyn BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let (zeros, len) = (bytes.iter().take_while(|byte| **byte == 0).count(), bytes.len());
        input.consume(zeros);
        if zeros < len {
            return Ok(true);
        }
    }
}

/// Reads an archive after its first magic number.
fn archive(input: &mut dyn BufRead, found: &mut Initramfs) -> Result<(), InitramfsError> {
    loop {
        let mut header = [0; HEADER];
        input.read_exact(&mut header)?;
        // `c_filesize` and `c_namesize` are the seventh and the twelfth number.
        let (len, name_len) = (number(&header[48..56])?, number(&header[88..96])?);
        if !(1..=MAX_NAME).contains(&name_len) {
            return Err(InitramfsError::Header("the length of a name"));
        }
        let mut name = vec![0; usize::try_from(name_len).unwrap_or_default()];
        input.read_exact(&mut name)?;
        skip(input, padding((MAGIC + HEADER) as u64 + name_len))?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name == TRAILER {
            return Ok(());
        }
        found.modules.extend(module(name));
        found.grows_root |= name.ends_with(GROWROOT);
        if found.modules.len() > MAX_MODULES {
            return Err(InitramfsError::Modules);
        }
        skip(input, len + padding(len))?;
        let mut magic = [0; MAGIC];
        input.read_exact(&mut magic)?;
        if !matches!(&magic, b"070701" | b"070702") {
            return Err(InitramfsError::Magic(magic));
        }
    }
}

/// A number of at most 32 bits.
fn number(digits: &[u8]) -> Result<u64, InitramfsError> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    number.ok_or(InitramfsError::Header("a number that is not hexadecimal"))
}

fn padding(len: u64) -> u64 {
    len.wrapping_neg() % 4
}

fn skip(input: &mut dyn BufRead, len: u64) -> io::Result<()> {
    if io::copy(&mut input.take(len), &mut io::sink())? == len {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn cpio(names: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names.iter().copied().chain(["TRAILER!!!"]) {
            let content: &[u8] = if name == "TRAILER!!!" { b"" } else { b"070701 is not a header here" };
            let numbers = [1, 0o100_644, 0, 0, 1, 0, content.len(), 0, 0, 0, 0, name.len() + 1, 0];
            bytes.extend_from_slice(b"070701");
            numbers.iter().for_each(|number| bytes.extend(format!("{number:08X}").bytes()));
            bytes.extend(name.bytes().chain([0]));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(bytes).unwrap();
        xz.finish().unwrap()
    }

    #[test]
    fn all_archives_of_any_compression_are_read() {
        let (a, b) = (
            cpio(&["lib/modules/1/nvme.ko"]),
            cpio(&["usr/lib/xen-blkfront.ko.xz", "x/ext4.ko.zst", "init", "y.ko.d"]),
        );
        let zeros = vec![0; 1000];
        let expected = ["ext4", "nvme", "xen_blkfront"].map(str::to_owned);
        let zstd = zstd::bulk::compress(&b, 1).unwrap();
        let forms = [
            [&a[..], &b].concat(),
            [&a[..], &zeros, &b, &zeros].concat(),
            [&a[..], &gzip(&b)].concat(),
            [&zeros[..], &a, &xz(&b)].concat(),
            [&a[..], &zeros, &zstd].concat(),
            [&gzip(&a)[..], &zstd, &a, &xz(&a)].concat(),
            gzip(&[&a[..], &zeros, &b].concat()),
        ];
        for (number, form) in forms.iter().enumerate() {
            let found = Initramfs::read(&form[..]);
            assert!(found.as_ref().is_ok_and(|found| found.modules.iter().eq(expected.iter())), "{number}: {found:?}");
        }
        assert!(Initramfs::read(&b""[..]).unwrap().modules.is_empty());
    }

    #[test]
    fn damage_is_told() {
        let good = cpio(&["nvme.ko"]);
        for len in (1..good.len() - 1).step_by(7) {
            assert!(matches!(Initramfs::read(&good[..len]), Err(InitramfsError::Read(_))), "cut at {len}");
            let packed = gzip(&good);
            let cut = &packed[..(packed.len() * len / good.len()).max(1)];
            assert!(Initramfs::read(cut).is_err(), "packed, cut at {len}");
        }
        let changed = |at: usize, bytes: &[u8]| {
            let mut bad = good.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            Initramfs::read(&bad[..]).unwrap_err()
        };
        assert!(matches!(changed(0, b"070707"), InitramfsError::Magic(_)));
        assert!(matches!(changed(54, b"0000000G"), InitramfsError::Header(_)));
        assert!(matches!(changed(54, b"+0000001"), InitramfsError::Header(_)));
        assert!(matches!(changed(54, b"FFFFFFFF"), InitramfsError::Read(_)));
        assert!(matches!(changed(94, b"00000000"), InitramfsError::Header(_)));
        assert!(matches!(changed(94, b"FFFFFFFF"), InitramfsError::Header(_)));
        assert!(matches!(Initramfs::read(&b"\x02\x21\x4c\x18ab"[..]), Err(InitramfsError::Unsupported("lz4"))));
        assert!(matches!(Initramfs::read(&gzip(&gzip(&good))[..]), Err(InitramfsError::Magic(_))), "packed twice");
    }

    #[test]
    fn a_bomb_ends() {
        let bomb =
            gzip(&[&b"070701"[..], &[b'0'; 48], b"FFFFFFF0", &[b'0'; 32], b"00000002", b"00000000", b"a\0"].concat());
        assert!(matches!(Initramfs::read(&bomb[..]), Err(InitramfsError::Read(_))));
        let zeros = gzip(&vec![0; 3000]);
        for (count, ends) in [(1, true), (2, false)] {
            let mut found = Initramfs { left: 4000, ..Initramfs::default() };
            let read = archives(&mut &zeros.repeat(count)[..], true, &mut found);
            assert!(
                if ends { read.is_ok() } else { matches!(read, Err(InitramfsError::TooLong)) },
                "{count}: {read:?}"
            );
        }
    }
}
