//! What is wrong with a volume, by the structure that is damaged: kinds to be matched, messages for people.

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

/// What is wrong with a structure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    /// It does not have the checksum that is stored with it.
    #[error("checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        found: u32,
        /// What its bytes give.
        expected: u32,
    },
    /// The superblock or a group descriptor has an impossible value.
    #[error(transparent)]
    Volume(#[from] VolumeFault),
    /// An inode has an impossible value.
    #[error(transparent)]
    Inode(#[from] InodeFault),
    /// An extent tree or a block map points to impossible places.
    #[error(transparent)]
    Mapping(#[from] MappingFault),
    /// A directory cannot be read, or does not agree with the inodes that it names.
    #[error(transparent)]
    Directory(#[from] DirectoryFault),
    /// An extended attribute cannot be read.
    #[error(transparent)]
    Attribute(#[from] AttributeFault),
    /// The journal cannot be replayed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}
