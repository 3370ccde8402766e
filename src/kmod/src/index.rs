//! Binary indexes of kmod, `modules.*.bin`: keys with values that have priorities.
//!
//! Format, as libkmod reads it: big endian. Magic number, version, and the location of the root, 4 bytes each; then nodes of a trie. The upper
//! 4 bits of a location are flags of the node, the others its offset from the start of the file. A node consists of
//!
//! - with [`PREFIX`], the characters that all its keys continue with, and NUL;
//! - with [`CHILDREN`], the first and the last character that lead to a child, 1 byte each, and the locations of all children between
//!   them, 0 if there is none;
//! - with [`VALUES`], the number of values of the key that ends here, and for each a priority (4 bytes), the value, and NUL.
//!
//! Characters are ASCII.

mod trie;
mod read;

pub use read::Index;
pub use trie::Trie;

const MAGIC: u32 = 0xB007_F457;
/// Major version 2, minor version 1.
const VERSION: u32 = 0x0002_0001;
const HEADER_LEN: u32 = 12;

const PREFIX: u32 = 0x8000_0000;
const VALUES: u32 = 0x4000_0000;
const CHILDREN: u32 = 0x2000_0000;
/// Mask of the offset in a location.
const OFFSET: u32 = 0x0fff_ffff;
