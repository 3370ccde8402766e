//! Why a member of an archive is refused.

use std::io;

/// What is wrong with a member.
#[derive(Debug, thiserror::Error)]
pub enum MemberFault {
    /// Its name is empty.
    #[error("has no name")]
    NoName,
    /// Its name is longer than a path of Linux may be.
    #[error("name is longer than {limit} bytes")]
    NameLen {
        /// The length of the longest path.
        limit: usize,
    },
    /// Its name has components that `strip` and `members` count only in tar.
    #[error("name begins with `./` or has empty components: `strip` and `members` would not select what tar selects")]
    Dotted,
    /// Its name begins at the root.
    #[error("name is absolute")]
    Absolute,
    /// Its name leads out of the archive, or is none.
    #[error("name has `..` or a NUL byte in it")]
    Name,
    /// An earlier member has its name.
    #[error("comes twice")]
    Twice,
    /// It stands below more directories than are taken.
    #[error("is more than {limit} directories deep")]
    Depth { limit: usize },
    /// A symbolic link of the same archive is on the way to it.
    #[error("would be placed through the archive's symbolic link {link:?}")]
    Through { link: String },
    /// A link that leads nowhere.
    #[error("link without target")]
    NoTarget,
    /// A symbolic link whose target is no path.
    #[error("target is too long or has a NUL byte in it")]
    Target,
    /// A hard link to what is no file, or comes later.
    #[error("is a hard link to {target:?}, which is no earlier file")]
    HardLink { target: String },
    /// Its bytes are of an encoding that nothing states.
    #[error("name is neither ASCII nor marked as UTF-8")]
    Encoding,
    /// It has the attribute of a directory and the name of a file.
    #[error("is marked as a directory, but its name does not end with a slash")]
    NoSlash,
    /// Some Windows programs write it in place of a slash.
    #[error("name contains a backslash")]
    Backslash,
    /// Its local header has another name than the central directory.
    #[error("has the name {name:?} in its local header")]
    OtherName {
        /// The name in the local header.
        name: String,
    },
    #[error("is encrypted")]
    Encrypted,
    /// An unsupported compression method.
    #[error("zip compression method {method} is not supported")]
    Method { method: u16 },
    /// Its content cannot be read, or differs from the central directory in length or checksum.
    #[error("cannot decompress: {error}")]
    Packed {
        /// In the words of the library.
        error: io::Error,
    },
    /// Its mode has an unsupported type, or one that does not match its name.
    #[error("is not a file, directory or symbolic link: mode {mode:o}")]
    Mode {
        /// Type and permissions, as in the member's attributes.
        mode: u32,
    },
    /// Nothing is left of its name.
    #[error("has no more than the {strip} components that are stripped")]
    Stripped {
        /// How many components the layer drops.
        strip: usize,
    },
    /// A user or group that Linux does not have.
    #[error("owner {value} is out of range")]
    Owner { value: i64 },
    /// A device whose numbers Linux does not have.
    #[error("device {major}:{minor} is out of range")]
    Device { major: i64, minor: i64 },
    /// A device, a pipe or a socket, where only files are taken.
    #[error("devices and pipes have no place in an artifact")]
    Special,
    /// A file with holes, in any of three notations.
    #[error("sparse members are not supported")]
    Sparse,
    /// A type that neither POSIX nor GNU tar has.
    #[error("unknown type {found:?}")]
    Type { found: char },
    /// Neither POSIX' ustar nor GNU's.
    #[error("bad header: unknown version of ustar")]
    Ustar,
    /// A field of the header is no number.
    #[error("bad header: {field} is {found:?}, expected a number")]
    Number {
        field: &'static str,
        /// Its bytes.
        found: String,
    },
    /// Header and extended header state different lengths.
    #[error("bad header: size is {size} and {other}")]
    Size {
        size: i64,
        /// The one that the reader takes.
        other: u64,
    },
    /// Something without content has one.
    #[error("is no file, and has a content of {size} bytes")]
    Content { size: i64 },
    /// An extended header that would fill the memory.
    #[error("extended header of {size} bytes, more than {limit}")]
    ExtendedLen {
        size: u64,
        /// The length of the longest that is read.
        limit: u64,
    },
    /// A long name in GNU tar's form that does not end.
    #[error("long name does not end with a NUL byte")]
    LongName,
    /// Programs do not agree on which of both wins.
    #[error("extended headers of GNU tar and of pax for one member")]
    TwoForms,
    /// The records of its extended header cannot be told apart.
    #[error("bad extended header: {0}")]
    Extended(PaxFault),
    /// A record of its extended header cannot be applied.
    #[error(transparent)]
    Record(#[from] PaxFault),
    /// The tar library cannot read a global header.
    #[error("bad global header: {error}")]
    GlobalUnread {
        /// In the words of the library.
        error: io::Error,
    },
    /// The records of a global header cannot be told apart.
    #[error("bad global header: {0}")]
    Global(PaxFault),
    /// A global header says more than a comment.
    #[error("global header with {key:?} is not supported")]
    GlobalKey { key: String },
    /// A global header takes the place of the member that an extended header speaks of.
    #[error("global header stands between a member and its extended header")]
    GlobalBetween,
}

/// What is wrong with the records of an extended header of pax.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaxFault {
    /// Not a length, a key and a value.
    #[error("malformed record")]
    Malformed,
    /// A key that is empty or has a NUL byte.
    #[error("record with the key {key:?}")]
    Key { key: String },
    /// A key comes again.
    #[error("two records of {key:?}")]
    Twice { key: String },
    /// A value is no number.
    #[error("bad {key} record")]
    Value { key: &'static str },
    /// A user or group that Linux does not have.
    #[error("owner {value} is out of range")]
    Owner { value: u64 },
    /// Where the next header stands must not depend on what only some readers look at.
    #[error("size in an extended header is not supported")]
    Size,
    /// A file with holes.
    #[error("sparse members are not supported")]
    Sparse,
    /// An extended attribute that has no name.
    #[error("extended attribute without a name")]
    Attribute,
}
