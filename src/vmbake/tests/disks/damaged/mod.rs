//! Corrupt images, and images that are expensive to read.

mod ext4;
mod fat;
mod gpt;
mod qcow2;

use std::path::PathBuf;

use super::Lab;

pub use ext4::EXT4;
pub use fat::FAT;
pub use gpt::GPT;
pub use qcow2::QCOW2;

/// One image, and what must be said of it.
pub struct Case {
    /// What was done to it.
    pub name: &'static str,
    /// Makes it; `None` where a tool is missing.
    pub make: fn(&Lab) -> Option<PathBuf>,
    /// A file inside.
    pub path: &'static str,
    /// Why it is refused; empty where it is sound.
    pub reason: &'static str,
    pub seen: Seen,
}

/// What a command has to look at to come upon the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// The bytes of the disk.
    Bytes,
    /// The partition table.
    Table,
    /// The root file system.
    Inside,
    /// All of that.
    Whole,
}
