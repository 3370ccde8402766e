//! Recognizes other image formats and files by their first and last bytes, for messages that name the format and a
//! command to convert it.
//!
//! Each row of the table refers to the definition of its magic number; offsets are bytes.

use std::fmt;
use std::path::Path;

use super::{ImageError, ImageFile};

/// Maximum size of a file that may be text, such as an error page or a list of checksums.
const MAX_TEXT: u64 = 1 << 20;
/// Bytes to examine.
const TEXT_LEN: u64 = 64 << 10;
/// Offset of the footers of VHD and DMG from the end of the file.
const FOOTER: u64 = 512;

/// A file that is not a raw or qcow2 disk image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    what: &'static str,
    help: Help,
}

/// How to convert it to a disk image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Help {
    /// With `qemu-img`, given its name of the format.
    Convert(&'static str),
    /// With a command that writes an unpacked file.
    Unpack(&'static str),
    /// With `tar`.
    Tar,
    /// Not possible.
    Download,
}

enum At {
    Start(u64),
    End(u64),
}

const fn disk(at: At, magic: &'static [u8], what: &'static str, format: &'static str) -> (At, &'static [u8], Foreign) {
    (at, magic, Foreign { what, help: Help::Convert(format) })
}

const fn packed(magic: &'static [u8], what: &'static str, command: &'static str) -> (At, &'static [u8], Foreign) {
    (At::Start(0), magic, Foreign { what, help: Help::Unpack(command) })
}

const TABLE: &[(At, &[u8], Foreign)] = &[
    // VMware, "Virtual Disk Format 5.0": hosted sparse extent, ESX sparse extent, descriptor.
    disk(At::Start(0), b"KDMV", "a VMware disk image (vmdk)", "vmdk"),
    disk(At::Start(0), b"COWD", "a VMware disk image (vmdk)", "vmdk"),
    disk(At::Start(0), b"# Disk DescriptorFile", "a descriptor of a VMware disk image (vmdk)", "vmdk"),
    // QEMU, block/vdi.c: VDI_SIGNATURE.
    disk(At::Start(0x40), b"\x7f\x10\xda\xbe", "a VirtualBox disk image (vdi)", "vdi"),
    // Microsoft, [MS-VHDX] 2.2.1.
    disk(At::Start(0), b"vhdxfile", "a Hyper-V disk image (vhdx)", "vhdx"),
    // Microsoft, "Virtual Hard Disk Image Format Specification": the footer, whose copy begins a dynamic disk.
    disk(At::Start(0), b"conectix", "a dynamic Virtual PC disk image (vhd)", "vpc"),
    disk(At::End(FOOTER), b"conectix", "a fixed Virtual PC disk image (vhd)", "vpc"),
    // QEMU, docs/interop/qed_spec.rst, parallels.rst.
    disk(At::Start(0), b"QED\0", "a QEMU enhanced disk image (qed)", "qed"),
    disk(At::Start(0), b"WithoutFreeSpace", "a Parallels disk image", "parallels"),
    disk(At::Start(0), b"WithouFreSpacExt", "a Parallels disk image", "parallels"),
    // QEMU, block/dmg.c: the trailer.
    disk(At::End(FOOTER), b"koly", "an Apple disk image (dmg)", "dmg"),
    // RFC 1952, 2.3.1, with its only method of compression.
    packed(b"\x1f\x8b\x08", "compressed with gzip", "gzip -dk"),
    // The .xz File Format, 2.1.1.1; RFC 8878, 3.1.1; LZ4 Frame Format.
    packed(b"\xfd7zXZ\0", "compressed with xz", "xz -dk"),
    packed(b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstd -d"),
    packed(b"\x04\x22\x4d\x18", "compressed with lz4", "lz4 -d"),
    // bzip2, decompress.c: BZ_HDR; the level follows.
    packed(b"BZh", "compressed with bzip2", "bzip2 -dk"),
    // PKWARE, APPNOTE.TXT, 4.3.7; 7-Zip, 7zFormat.txt.
    packed(b"PK\x03\x04", "a zip archive", "unzip"),
    packed(b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x"),
    // Android, libsparse/sparse_format.h: SPARSE_HEADER_MAGIC.
    packed(b"\x3a\xff\x26\xed", "an Android sparse image", "simg2img"),
    // POSIX.1, pax, "ustar Interchange Format".
    (At::Start(257), b"ustar", Foreign { what: "a tar archive", help: Help::Tar }),
];

/// A file that cannot be an overlay.
pub(super) const NOT_QCOW2: Foreign = Foreign { what: "not a qcow2 file", help: Help::Download };

impl Foreign {
    /// The hint for the file at `path`.
    pub(super) fn hint(&self, path: &Path) -> String {
        let name = quoted(path);
        let is_tar = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.contains(".tar.") || name.ends_with(".tgz")
        });
        match self.help {
            Help::Convert(format) => {
                let new = quoted(&path.with_extension("qcow2"));
                format!("convert it: qemu-img convert -f {format} -O qcow2 {name} {new}")
            }
            Help::Unpack(_) if is_tar => format!("unpack it: tar -xf {name}"),
            Help::Unpack(command) => format!("unpack it: {command} {name}"),
            Help::Tar => format!("unpack it: tar -xf {name}"),
            Help::Download => format!("`head {name}` shows its start; a download may have failed: get the image again"),
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

/// The format of a file, if it is recognized as neither raw nor qcow2.
pub(super) fn recognise(file: &ImageFile) -> Result<Option<Foreign>, ImageError> {
    for (at, magic, found) in TABLE {
        let offset = match at {
            At::Start(offset) => Some(*offset),
            At::End(offset) => file.len().checked_sub(*offset),
        };
        let mut bytes = vec![0; magic.len()];
        let fits = |offset: &u64| file.len().saturating_sub(*offset) >= bytes.len() as u64;
        let Some(offset) = offset.filter(fits) else { continue };
        file.read_inside(&mut bytes, offset)?;
        if bytes == *magic {
            return Ok(Some(*found));
        }
    }
    text(file)
}

/// A text file. A disk contains zeros, and is larger.
fn text(file: &ImageFile) -> Result<Option<Foreign>, ImageError> {
    if file.len() > MAX_TEXT {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(file.len().min(TEXT_LEN)).unwrap_or_default()];
    file.read_inside(&mut bytes, 0)?;
    if bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        return Ok(None);
    }
    let cut = |error: std::str::Utf8Error| error.error_len().is_none();
    if std::str::from_utf8(&bytes).is_err_and(|error| !cut(error)) {
        return Ok(None);
    }
    let start = String::from_utf8_lossy(bytes.trim_ascii_start()).chars().take(16).collect::<String>().to_lowercase();
    let is_html = ["<!doctype html", "<html"].iter().any(|tag| start.starts_with(tag));
    let what = if is_html { "an HTML page" } else { "a text file" };
    Ok(Some(Foreign { what, help: Help::Download }))
}

/// Quotes a path for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./+,:@%=".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word() {
        for (path, word) in [("a/b-1.raw", "a/b-1.raw"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
