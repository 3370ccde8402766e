//! Hints: what to do about an error, printed as the `hint:` line below its message.

use std::error::Error;
use std::io::ErrorKind;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::{AuthorError, ReadError};
use vmbake_disk::fat::FatError;
use vmbake_disk::gpt::GptError;
use vmbake_disk::image::{BackingNameError, Format, ImageError};
use vmbake_disk::layout::LayoutError;
use vmbake_disk::squashfs::SquashfsError;
use vmbake_disk::tar::TarError;
use vmbake_disk::tree::TreeError;
use vmbake_disk::write::WriteError;

use crate::spelling::of_path;

/// Hint for arguments that must be disk images.
pub fn image() -> String {
    format!("a disk image is a {} file; `vmbake bake` writes such files to dist", Format::NAMES)
}

/// An error that may have a hint.
pub trait Hint: Error {
    /// What to do about the error, in one sentence.
    fn hint(&self) -> Option<String> {
        None
    }

    /// The wrapped error or source whose hint applies if this error has none.
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        None
    }

    /// Whether the message has several lines. Untrusted text in it is escaped.
    fn has_lines(&self) -> bool {
        false
    }
}

/// Defines the method `inner` of an enum: it covers variants with a single field, a field `source` or a field `error`.
#[macro_export]
macro_rules! causes {
    ($($only:ident),* $(; $($source:ident),* $(; $($error:ident),*)?)?) => {
        #[allow(unreachable_patterns, reason = "all variants may have a cause")]
        fn inner(&self) -> Option<&(dyn $crate::hint::Hint + 'static)> {
            match self {
                $(Self::$only(cause) => Some(cause),)*
                $(
                    $(Self::$source { source, .. } => Some(source),)*
                    $($(Self::$error { error, .. } => Some(error),)*)?
                )?
                _ => None,
            }
        }
    };
}

impl<E: Hint> Hint for Box<E> {
    fn hint(&self) -> Option<String> {
        (**self).hint()
    }

    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        (**self).inner()
    }

    fn has_lines(&self) -> bool {
        (**self).has_lines()
    }
}

impl<'a, E: Hint + Send + Sync + 'a> From<E> for Box<dyn Hint + Send + Sync + 'a> {
    fn from(error: E) -> Self {
        Box::new(error)
    }
}

impl Hint for serde_json::Error {}

impl Hint for std::string::FromUtf8Error {}

impl Hint for std::io::Error {
    fn hint(&self) -> Option<String> {
        match self.kind() {
            ErrorKind::StorageFull => Some("the file system is full: use --out to choose another directory".to_owned()),
            ErrorKind::PermissionDenied => Some(
                "vmbake does not need root, but needs permission to read its inputs and write its outputs: check permissions with `ls -l`"
                    .to_owned(),
            ),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
                Some("see --help of the command for the expected value".to_owned())
            }
            _ => None,
        }
    }
}

impl Hint for ImageError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { path, source } => of_path(path, source, &image()),
            _ => Self::hint(self),
        }
    }

    crate::causes!(; Open, Read, Decompress);
}

impl Hint for AuthorError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::TooSmall { .. }).then(|| "use --size to enlarge the disk".to_owned())
    }
}

impl Hint for LayoutError {
    fn hint(&self) -> Option<String> {
        of_layout(self, "IMAGE")
    }

    crate::causes!(Gpt; Read);
}

/// The hint for an error in the partition layout of the disk `image`.
pub fn of_layout(error: &LayoutError, image: &str) -> Option<String> {
    match error {
        LayoutError::SeveralRoots { .. } => Some("use --partition N to choose one".to_owned()),
        LayoutError::NoRoot { .. } => Some(format!(
            "use --partition N to choose the partition; `vmbake inspect {image}` lists the contents of each"
        )),
        LayoutError::NoPartition { .. } => Some(format!("`vmbake inspect {image}` lists the partitions")),
        LayoutError::Nothing => Some(format!(
            "the partition may be encrypted, damaged or in an unsupported format: examine it with `qemu-img info {image}` and `file -s {image}`"
        )),
        LayoutError::Gpt(GptError::BothUnusable { .. }) => Some(format!(
            "the file may be incomplete: compare its length with the original's; for a raw disk, `sgdisk --verify {image}` reports more"
        )),
        _ => None,
    }
}

impl Hint for AssembleError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Mbr => {
                "use a base with a GUID partition table, such as a Debian cloud image; `sgdisk --mbrtogpt` \
                converts a raw disk that boots by UEFI"
            }
            Self::NoTable { .. } => {
                "use an image of a whole disk, such as debian-13-genericcloud-amd64.qcow2; a bare file system does not boot"
            }
            Self::InTheWay { .. } => {
                "bake without --size, or delete that partition from a copy of the base: `sgdisk --delete=N COPY`"
            }
            Self::Gpt(GptError::SectorSize { .. }) => {
                "use a base with 512-byte sectors, as cloud images have; other sector sizes are supported only for reading"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    crate::causes!(Layout, Gpt; Window);
}

impl Hint for ReadError {
    crate::causes!(; Io);
}

impl Hint for FatError {
    crate::causes!(Tree; Read);
}

impl Hint for GptError {
    crate::causes!(; Read);
}

impl Hint for BackingNameError {}

impl Hint for SquashfsError {
    crate::causes!(Io);
}

impl Hint for TarError {}

impl Hint for TreeError {
    crate::causes!(; Read);
}

impl Hint for WriteError {
    crate::causes!(; Read, Output, Compress, Thread);
}
