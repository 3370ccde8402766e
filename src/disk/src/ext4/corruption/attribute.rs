//! Faults of extended attributes.

use super::Corruption;
use crate::ext4::Location;

/// Why an extended attribute is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributeFault {
    #[error("magic {found:#010x} of {blocks} attribute blocks, expected 0xea020000 of 1")]
    Magic {
        /// `h_magic`.
        found: u32,
        /// `h_blocks`.
        blocks: u32,
    },
    #[error("attribute block counts {found} users, which differs from the number of inodes that use it")]
    Users {
        /// `h_refcount`.
        found: u32,
    },
    #[error("unterminated list of attributes")]
    NoEnd,
    #[error("attribute name of {len} bytes")]
    NameLen {
        /// `e_name_len`.
        len: u8,
    },
    #[error("attribute value of {size} bytes at byte {at}")]
    ValueRange {
        /// `e_value_size`.
        size: u32,
        /// `e_value_offs`.
        at: usize,
    },
    #[error("attribute name {name:?}")]
    Name { name: String },
    #[error("duplicate attribute {name}")]
    Twice { name: String },
    #[error("attribute {name}: {fault}")]
    Acl { name: String, fault: AclFault },
    #[error("attribute {name} of {owner}: {what}")]
    Value {
        name: String,
        owner: Box<Location>,
        /// The fault of the value.
        what: Box<Corruption>,
    },
    #[error("has a value in an inode, without feature ea_inode")]
    NoFeature,
    #[error("is not the value of an attribute")]
    NotValue,
    #[error("value of {found} bytes, expected {expected}, at most 65536")]
    ValueLen {
        /// `i_size`.
        found: u64,
        /// `e_value_size`.
        expected: u64,
    },
}

/// Why an access control list is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AclFault {
    #[error("{len} bytes")]
    Len { len: usize },
    #[error("version {found}, expected {expected}")]
    Version {
        found: u32,
        /// The version on disk, or in system calls.
        expected: u32,
    },
    #[error("truncated entry")]
    Cut,
    #[error("entry with tag {tag:#x}")]
    Tag { tag: u16 },
}
