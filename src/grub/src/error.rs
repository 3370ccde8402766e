//! Why a disk cannot boot by GRUB.

use std::io;

use vmbake_common::hint::Hint;
use vmbake_disk::disk::AssembleError;
use vmbake_disk::fat::AuthorError;
use vmbake_disk::tree::TreeError;

use crate::menu::MKCONFIG;

/// A failure, with the path of the file in the tree.
#[derive(Debug, thiserror::Error)]
pub enum GrubError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("{path}: {fault}")]
    Corrupt { path: String, fault: Fault },
    #[error("{path}: module {module:?} is listed in moddep.lst as a dependency, but has no line there")]
    NoModule { path: String, module: String },
    #[error("{what}: {len} bytes, more than the limit of {limit}")]
    TooLarge { what: &'static str, len: u64, limit: u64 },
    #[error("cannot compress GRUB's core image")]
    Compress { source: io::Error },
    #[error("cannot create the EFI system partition")]
    Esp { source: AuthorError },
    #[error("unsupported architecture {arch:?}: expected amd64 or arm64")]
    Arch { arch: String },
    #[error("the image has no kernel: there is no /boot/vmlinuz-VERSION")]
    NoKernel,
    #[error("the image has no boot loader: neither {bios} nor {efi}")]
    NoLoader { bios: &'static str, efi: String },
    #[error("the image has no {MKCONFIG}, which writes the menu of the boot loader")]
    NoMkconfig,
    #[error("/etc/fstab mounts {found} on {point}: expected {expected}, the partition of the new disk")]
    Mount { point: String, found: String, expected: String },
    #[error("cannot write GRUB's menu: grub-mkconfig: {what}")]
    Menu { what: String },
    #[error("cannot lay out the disk")]
    Disk(#[from] AssembleError),
}

impl Hint for GrubError {
    vmbake_common::causes!(Tree, Disk; Compress);
}

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}: expected {expected}, found {found}")]
pub struct Fault {
    /// From the start of the file.
    pub offset: usize,
    pub what: &'static str,
    pub expected: String,
    pub found: String,
}

impl Fault {
    pub(crate) fn new(offset: usize, what: &'static str, expected: impl ToString, found: impl ToString) -> Self {
        Self { offset, what, expected: expected.to_string(), found: found.to_string() }
    }

    pub(crate) fn at(self, path: &str) -> GrubError {
        GrubError::Corrupt { path: path.to_owned(), fault: self }
    }
}

/// A little-endian number of two bytes.
pub(crate) fn le16(bytes: &[u8], offset: usize) -> Result<u16, Fault> {
    let found = offset.checked_add(2).and_then(|end| bytes.get(offset..end)?.try_into().ok());
    found.map(u16::from_le_bytes).ok_or_else(|| Fault::new(offset, "number", "two bytes", "the end of the file"))
}

/// A little-endian number of four bytes, as a length or an offset.
pub(crate) fn le32(bytes: &[u8], offset: usize) -> Result<usize, Fault> {
    let found = offset.checked_add(4).and_then(|end| bytes.get(offset..end)?.try_into().ok());
    let number = found.map(u32::from_le_bytes).and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Fault::new(offset, "number", "four bytes", "the end of the file"))
}

/// Replaces the bytes at `offset`.
pub(crate) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) -> Result<(), Fault> {
    let len = bytes.len();
    let slot = offset.checked_add(value.len()).and_then(|end| bytes.get_mut(offset..end));
    let slot = slot.ok_or_else(|| {
        Fault::new(offset, "field", format!("{} bytes", value.len()), format!("a file of {len} bytes"))
    })?;
    slot.copy_from_slice(value);
    Ok(())
}
