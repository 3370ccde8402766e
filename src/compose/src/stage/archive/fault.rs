//! Why a member of an archive is refused.

use std::io;
use vmbake_common::hint::Hint;

/// What is wrong with a member.
#[derive(Debug, thiserror::Error)]
pub enum MemberFault {
    #[error("has no name")]
    NoName,
    #[error("name is longer than {limit} bytes")]
    NameLen {
        /// The length of the longest path.
        limit: usize,
    },
    #[error("name begins with `./` or has empty components: `strip` and `members` would not select what tar selects")]
    Dotted,
    #[error("name is absolute")]
    Absolute,
    #[error("name has `..` or a NUL byte in it")]
    Name,
    #[error("comes twice")]
    Twice,
    #[error("is more than {limit} directories deep")]
    Depth { limit: usize },
    #[error("would be placed through the archive's symbolic link {link:?}")]
    Through { link: String },
    #[error("link without target")]
    NoTarget,
    #[error("target is too long or has a NUL byte in it")]
    Target,
    #[error("is a hard link to {target:?}, which is no earlier file")]
    HardLink { target: String },
    #[error("name is neither ASCII nor marked as UTF-8")]
    Encoding,
    #[error("is marked as a directory, but its name does not end with a slash")]
    NoSlash,
    #[error("name contains a backslash")]
    Backslash,
    #[error("has the name {name:?} in its local header")]
    OtherName {
        /// The name in the local header.
        name: String,
    },
    #[error("is encrypted")]
    Encrypted,
    #[error("zip compression method {method} is not supported")]
    Method { method: u16 },
    #[error("cannot decompress: {error}")]
    Packed {
        /// In the words of the library.
        error: io::Error,
    },
    #[error("is not a file, directory or symbolic link: mode {mode:o}")]
    Mode {
        /// Type and permissions, as in the member's attributes.
        mode: u32,
    },
    #[error("has no more than the {strip} components that are stripped")]
    Stripped {
        /// How many components the layer drops.
        strip: usize,
    },
    #[error("owner {value} is out of range")]
    Owner { value: i64 },
    #[error("device {major}:{minor} is out of range")]
    Device { major: i64, minor: i64 },
    #[error("devices and pipes have no place in an artifact")]
    Special,
    #[error("sparse members are not supported")]
    Sparse,
    #[error("unknown type {found:?}")]
    Type { found: char },
    #[error("bad header: unknown version of ustar")]
    Ustar,
    #[error("bad header: {field} is {found:?}, expected a number")]
    Number {
        field: &'static str,
        /// Its bytes.
        found: String,
    },
    #[error("bad header: size is {size} and {other}")]
    Size {
        size: i64,
        /// The one that the reader takes.
        other: u64,
    },
    #[error("is no file, and has a content of {size} bytes")]
    Content { size: i64 },
    #[error("extended header of {size} bytes, more than {limit}")]
    ExtendedLen {
        size: u64,
        /// The length of the longest that is read.
        limit: u64,
    },
    #[error("long name does not end with a NUL byte")]
    LongName,
    #[error("extended headers of GNU tar and of pax for one member")]
    TwoForms,
    #[error("bad extended header: {0}")]
    Extended(PaxFault),
    #[error(transparent)]
    Record(#[from] PaxFault),
    #[error("bad global header: {error}")]
    GlobalUnread {
        /// In the words of the library.
        error: io::Error,
    },
    #[error("bad global header: {0}")]
    Global(PaxFault),
    #[error("global header with {key:?} is not supported")]
    GlobalKey { key: String },
    #[error("global header stands between a member and its extended header")]
    GlobalBetween,
}

impl Hint for MemberFault {
    vmbake_common::causes!(Record);
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
}

impl Hint for PaxFault {}
