//! What to do about an error: each error says it itself, for the `hint:` line below its message.

use std::error::Error;
use std::io::ErrorKind;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::{AuthorError, ReadError};
use vmbake_disk::fat::FatError;
use vmbake_disk::gpt::GptError;
use vmbake_disk::image::{BackingNameError, ImageError};
use vmbake_disk::layout::LayoutError;
use vmbake_disk::squashfs::SquashfsError;
use vmbake_disk::tree::TreeError;
use vmbake_disk::write::WriteError;

use crate::spelling::of_path;

/// What to name where an image is asked for.
pub const IMAGE: &str = "a disk image is a raw or qcow2 file; `vmbake bake` writes such files to dist";

/// An error that knows more than its message.
pub trait Hint: Error {
    /// What to do about it, in one sentence.
    fn hint(&self) -> Option<String> {
        None
    }

    /// The error that it passes on, or its source, if that may have a hint.
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        None
    }

    /// Whether its message has lines of its own, in which nothing from outside has any.
    fn has_lines(&self) -> bool {
        false
    }
}

/// The method `inner` of an enum: variants of a single field, those with a field `source`, and those with a field `error`.
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
            ErrorKind::StorageFull => Some("the file system is full: --out names another directory".to_owned()),
            ErrorKind::PermissionDenied => Some(
                "vmbake needs no root, but you must be allowed to read and write what it does: `ls -l` shows who may"
                    .to_owned(),
            ),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
                Some("--help of the command says what belongs there".to_owned())
            }
            _ => None,
        }
    }
}

impl Hint for ImageError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { path, source } => of_path(path, source, IMAGE),
            _ => Self::hint(self),
        }
    }

    crate::causes!(; Open, Read, Decompress);
}

impl Hint for AuthorError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::TooSmall { .. }).then(|| "--size makes the disk larger".to_owned())
    }
}

impl Hint for LayoutError {
    fn hint(&self) -> Option<String> {
        of_layout(self, "IMAGE")
    }

    crate::causes!(Gpt; Read);
}

/// What to do about the layout of a disk in the file `image`.
pub fn of_layout(error: &LayoutError, image: &str) -> Option<String> {
    match error {
        LayoutError::SeveralRoots { .. } => Some("--partition N chooses one of them".to_owned()),
        LayoutError::NoRoot { .. } => {
            Some(format!("--partition N chooses the partition; `vmbake inspect {image}` says what is on each"))
        }
        LayoutError::NoPartition { .. } => Some(format!("`vmbake inspect {image}` lists the partitions")),
        LayoutError::Nothing => Some(format!(
            "it may be encrypted, damaged or in another format: `qemu-img info {image}` and `file -s {image}` know more of them"
        )),
        LayoutError::Gpt(GptError::BothUnusable { .. }) => Some(format!(
            "the file may be incomplete: compare its length with the original's; `sgdisk --verify {image}` says more of a raw one"
        )),
        _ => None,
    }
}

impl Hint for AssembleError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Mbr => {
                "take a base with a GUID partition table, as Debian's cloud images have one; `sgdisk --mbrtogpt` makes one of a \
             raw disk that boots by UEFI"
            }
            Self::NoTable { .. } => {
                "take the image of a whole disk, such as debian-13-genericcloud-amd64.qcow2; a bare file system does not boot"
            }
            Self::InTheWay { .. } => {
                "bake without --size, or remove that partition from a copy of the base: `sgdisk --delete=N COPY`"
            }
            Self::Gpt(GptError::SectorSize { .. }) => {
                "take a base with sectors of 512 bytes, as cloud images have; vmbake only reads the other ones"
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

impl Hint for TreeError {
    crate::causes!(; Read);
}

impl Hint for WriteError {
    crate::causes!(; Read, Output, Compress, Thread);
}
