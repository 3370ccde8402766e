//! Why a member of an archive is refused.

use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

/// What is wrong with a member.
#[derive(Debug, thiserror::Error)]
pub enum MemberFault {
    #[error("has no name")]
    NoName,
    #[error("is duplicated")]
    Twice,
    #[error("has the name {name:?} in its local header")]
    OtherName {
        /// The name in the local header.
        name: String,
    },
    #[error("sparse members are not supported")]
    Sparse,
    #[error("is not a file, but has {size} bytes of content")]
    Content { size: i64 },
    #[error(transparent)]
    Record(#[from] PaxFault),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for MemberFault {
    vmbake_common::causes!(Record, Message);
}

/// What is wrong with the records of an extended header of pax.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaxFault {
    #[error("malformed record")]
    Malformed,
    #[error("record with the key {key:?}")]
    Key { key: String },
    #[error("two records of {key:?}")]
    Twice { key: String },
    #[error("bad {key} record")]
    Value { key: &'static str },
    #[error("owner {value} is out of range")]
    Owner { value: u64 },
    #[error("size in an extended header is not supported")]
    Size,
    #[error("sparse members are not supported")]
    Sparse,
    #[error("extended attribute without a name")]
    Attribute,
    #[error("attribute {key:?} without the same as SCHILY.xattr, as `tar --xattrs --xattrs-include='*'` writes it")]
    Lost { key: String },
}

impl Hint for PaxFault {}
