//! Faults of a volume by structure, with messages.

mod volume;
mod inode;
mod mapping;
mod directory;
mod attribute;
mod journal;

pub use attribute::{AclFault, AttributeFault};
pub use directory::DirectoryFault;
pub use inode::InodeFault;
pub use journal::JournalFault;
pub use mapping::MappingFault;
pub use volume::VolumeFault;

/// The fault of a structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    #[error("checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        found: u32,
        /// Computed from its bytes.
        expected: u32,
    },
    #[error(transparent)]
    Volume(#[from] VolumeFault),
    #[error(transparent)]
    Inode(#[from] InodeFault),
    #[error(transparent)]
    Mapping(#[from] MappingFault),
    #[error(transparent)]
    Directory(#[from] DirectoryFault),
    #[error(transparent)]
    Attribute(#[from] AttributeFault),
    #[error(transparent)]
    Journal(#[from] JournalFault),
}
