//! The backing file of an overlay: its name, and its format in a header extension.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU, "Header" and "Header extensions". Stricter: version 3, clusters of
//! 64 KiB, no snapshots, no features except the compression type, a plain file name, and an explicit format. QEMU
//! interprets a name with a colon as a protocol, guesses a missing format, and follows a path to any file of the
//! machine.

use std::fmt;

use super::header::{Header, be32, be64};
use super::{ImageError, ImageFile, Qcow2Structure};
use crate::image::Format;

/// Header extension with the format of the backing file.
pub const FORMAT: u32 = 0xe279_2aca;
/// End of the header extensions.
pub const END: u32 = 0;
/// Maximum length of a file name.
const MAX_NAME: usize = 255;
/// The fixed part of the header, complete in an overlay.
const HEADER: usize = 112;

/// The backing file of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    name: String,
    format: Format,
}

/// An invalid name of a backing file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name of a backing file {name:?}: {reason}")]
pub struct BackingNameError {
    pub name: String,
    pub reason: &'static str,
}

impl Backing {
    /// A file called `name`, in the directory of the overlay.
    pub fn new(name: &str, format: Format) -> Result<Self, BackingNameError> {
        let reason = match name {
            "" | "." | ".." => "it is not a file name",
            _ if name.len() > MAX_NAME => "it is longer than 255 bytes",
            _ if name.contains('/') => "it refers to another directory",
            _ if name.contains(':') => "QEMU interprets the text before a colon as a protocol",
            _ if name.chars().any(char::is_control) => "it contains a control character",
            _ => return Ok(Self { name: name.to_owned(), format }),
        };
        Err(BackingNameError { name: name.to_owned(), reason })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads it from the header of an overlay.
    pub fn read(file: &ImageFile, header: &Header) -> Result<Self, ImageError> {
        const HINT: &str = "use the file as written by `vmbake delta`";
        let unsupported = |what: String| file.unsupported(what, HINT);
        if (header.version, header.cluster_bits) != (3, 16) {
            let found = format!("version {} and clusters of {} bytes", header.version, header.cluster_size());
            return Err(unsupported(format!("{found} as an overlay")));
        }
        let mut first = vec![0; usize::try_from(header.cluster_size().min(file.len())).unwrap_or(HEADER)];
        file.read(&mut first, 0, Qcow2Structure::Header)?;
        let fixed = first.first_chunk().ok_or_else(|| unsupported("a truncated header".to_owned()))?;
        for (at, what) in [(60, "snapshots"), (80, "compatible features"), (88, "autoclear features")] {
            let found = if at == 60 { u64::from(be32(fixed, at)) } else { be64(fixed, at) };
            if found != 0 {
                return Err(unsupported(format!("{what} ({found:#x})")));
            }
        }
        let format = format(&first, u64::from(be32(fixed, 100)));
        let format = format.ok_or_else(|| unsupported("a backing file without a format".to_owned()))?;
        let format = String::from_utf8_lossy(format);
        let format: Format = format.parse().map_err(|_| unsupported(format!("a backing file of format {format:?}")))?;
        let (at, len) = (be64(fixed, 8), u64::from(be32(fixed, 16)));
        let name = part(&first, at, len).and_then(|name| str::from_utf8(name).ok());
        let name = name.ok_or_else(|| unsupported("a backing file whose name is unreadable".to_owned()))?;
        Self::new(name, format).map_err(|error| unsupported(format!("a backing file whose name is refused: {error}")))
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.format)
    }
}

/// The format extension in the list of header extensions at `at`.
fn format(first: &[u8], mut at: u64) -> Option<&[u8]> {
    loop {
        let head = part(first, at, 8)?;
        let word = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let (kind, len) = (word(0), u64::from(word(4)));
        match kind {
            END => return None,
            FORMAT => return part(first, at + 8, len),
            _ => at = at.checked_add(8 + len.next_multiple_of(8))?,
        }
    }
}

fn part(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(len)?).ok()?)
}
