//! Faults of extended attributes.

use super::Corruption;
use crate::ext4::Place;

/// Why an extended attribute cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeFault {
    /// An attribute block has the wrong magic number, or claims several blocks.
    #[error("magic {found:#010x} of {blocks} attribute blocks, expected 0xea020000 of 1")]
    Magic {
        /// `h_magic`.
        found: u32,
        /// `h_blocks`.
        blocks: u32,
    },
    /// The reference count of an attribute block differs from the number of its users.
    #[error("attribute block counts {found} users, not as many inodes as use it")]
    Users {
        /// `h_refcount`.
        found: u32,
    },
    /// The list of attributes has no end.
    #[error("list of attributes without an end")]
    NoEnd,
    /// A name does not fit into the list.
    #[error("attribute name of {len} bytes")]
    NameLen {
        /// `e_name_len`.
        len: u8,
    },
    /// A value does not fit into the block or inode.
    #[error("attribute value of {size} bytes at byte {at}")]
    ValueRange {
        /// `e_value_size`.
        size: u32,
        /// `e_value_offs`.
        at: usize,
    },
    /// The name is one that no system call takes.
    #[error("attribute name {name:?}")]
    Name { name: String },
    /// Two attributes have the same name.
    #[error("attribute {name} twice")]
    Twice { name: String },
    /// The value is not a valid access control list.
    #[error("attribute {name}: {fault}")]
    Acl { name: String, fault: AclFault },
    /// The inode that holds the value is damaged.
    #[error("attribute {name} of {owner}: {what}")]
    Value {
        name: String,
        owner: Box<Place>,
        /// What is wrong with the value.
        what: Box<Corruption>,
    },
    /// A value is in an inode of its own, but the volume lacks the feature.
    #[error("holds a value, without feature ea_inode")]
    NoFeature,
    /// The inode does not hold a value.
    #[error("is no value of an attribute")]
    NotValue,
    /// The value does not have the length that the attribute says, or is too long.
    #[error("value of {found} bytes, expected {expected}, at most 65536")]
    ValueLen {
        /// `i_size`.
        found: u64,
        /// `e_value_size`.
        expected: u64,
    },
}

/// Why an access control list is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AclFault {
    /// It is too short for a version.
    #[error("{len} bytes")]
    Len { len: usize },
    /// It has an unknown version.
    #[error("version {found}, expected {expected}")]
    Version {
        found: u32,
        /// The version of what is stored, or of system calls.
        expected: u32,
    },
    /// It ends inside an entry.
    #[error("cut entry")]
    Cut,
    /// An entry has an unknown tag.
    #[error("entry with tag {tag:#x}")]
    Tag { tag: u16 },
}
