//! What to do about an error: each error says it itself, for the `hint:` line below its message.

use std::error::Error;
use std::io::ErrorKind;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::gpt::GptError;
use vmbake_disk::image::ImageError;
use vmbake_disk::layout::LayoutError;

use crate::spelling::of_path;

/// What to name where an image is asked for.
pub const IMAGE: &str = "a disk image is a raw or qcow2 file; `vmbake bake` writes such files to dist";

/// An error that knows more than its message. Those that are told to users are listed in the table of the program, `cli/advice.rs`.
pub trait Hint: Error {
    /// What to do about it, in one sentence.
    fn hint(&self) -> Option<String> {
        None
    }

    /// The error in it that it only passes on, and so does not name as its source.
    fn passed_on(&self) -> Option<&(dyn Error + 'static)> {
        None
    }

    /// Whether its message has lines of its own, in which nothing from outside has any.
    fn has_lines(&self) -> bool {
        false
    }
}

impl<E: Hint> Hint for Box<E> {
    fn hint(&self) -> Option<String> {
        (**self).hint()
    }

    fn passed_on(&self) -> Option<&(dyn Error + 'static)> {
        (**self).passed_on()
    }

    fn has_lines(&self) -> bool {
        (**self).has_lines()
    }
}

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

    fn passed_on(&self) -> Option<&(dyn Error + 'static)> {
        self.inner()
    }
}
