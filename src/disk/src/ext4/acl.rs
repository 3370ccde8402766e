//! POSIX access control lists: `getxattr(2)` returns version 2 with entries of 8 bytes, ext4 stores version 1, in which
//! entries without an ID take 4 bytes (`fs/ext4/acl.h`, `include/uapi/linux/posix_acl_xattr.h`).

use super::corruption::AclFault;
use super::{le16, le32};

/// First word of the form on disk.
const DISK_VERSION: u32 = 1;
/// First word of the form in system calls.
const XATTR_VERSION: u32 = 2;
/// The ID of entries without one (`ACL_UNDEFINED_ID`).
const UNDEFINED_ID: u32 = u32::MAX;

/// Whether entries with this tag have an ID; `None` for an invalid tag.
fn has_id(tag: u16) -> Option<bool> {
    match tag {
        0x02 | 0x08 => Some(true),
        0x01 | 0x04 | 0x10 | 0x20 => Some(false),
        _ => None,
    }
}

/// Converts from disk to `getxattr(2)`. The error describes the fault.
pub(super) fn from_disk(disk: &[u8]) -> Result<Vec<u8>, AclFault> {
    let mut rest = version(disk, DISK_VERSION)?;
    let mut out = XATTR_VERSION.to_le_bytes().to_vec();
    while !rest.is_empty() {
        let head = rest.get(..4).ok_or(AclFault::Cut)?;
        out.extend_from_slice(head);
        let len = if has_id(le16(head, 0)).ok_or_else(|| unknown(head))? { 8 } else { 4 };
        let entry = rest.get(..len).ok_or(AclFault::Cut)?;
        let id = if len == 8 { le32(entry, 4) } else { UNDEFINED_ID };
        out.extend_from_slice(&id.to_le_bytes());
        rest = &rest[len..];
    }
    Ok(out)
}

/// Converts from `getxattr(2)` to disk. The error describes the fault.
pub(super) fn to_disk(xattr: &[u8]) -> Result<Vec<u8>, AclFault> {
    let entries = version(xattr, XATTR_VERSION)?;
    if entries.len() % 8 != 0 {
        return Err(AclFault::Cut);
    }
    let mut out = DISK_VERSION.to_le_bytes().to_vec();
    for entry in entries.chunks_exact(8) {
        let len = if has_id(le16(entry, 0)).ok_or_else(|| unknown(entry))? { 8 } else { 4 };
        out.extend_from_slice(&entry[..len]);
    }
    Ok(out)
}

fn version(bytes: &[u8], expected: u32) -> Result<&[u8], AclFault> {
    match bytes.split_at_checked(4) {
        Some((head, rest)) if le32(head, 0) == expected => Ok(rest),
        Some((head, _)) => Err(AclFault::Version { found: le32(head, 0), expected }),
        None => Err(AclFault::Len { len: bytes.len() }),
    }
}

fn unknown(entry: &[u8]) -> AclFault {
    AclFault::Tag { tag: le16(entry, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u::rwx,u:1000:r--,g::r-x,m::rwx,o::---`, as shown by getfattr and debugfs for the same file.
    const XATTR: &[u8] = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x04\0\xe8\x03\0\0\x04\0\x05\0\xff\xff\xff\xff\
        \x10\0\x07\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";
    const DISK: &[u8] = b"\x01\0\0\0\x01\0\x07\0\x02\0\x04\0\xe8\x03\0\0\x04\0\x05\0\x10\0\x07\0\x20\0\0\0";

    #[test]
    fn both_forms_convert_into_each_other() {
        assert_eq!(to_disk(XATTR).unwrap(), DISK);
        assert_eq!(from_disk(DISK).unwrap(), XATTR);
    }

    #[test]
    fn malformed_lists_are_errors() {
        for bad in [&DISK[..3], &DISK[..10], XATTR, b"\x01\0\0\0\x03\0\x07\0"] {
            assert!(from_disk(bad).is_err(), "{bad:?}");
        }
        for bad in [&XATTR[..3], &XATTR[..10], DISK, b"\x02\0\0\0\x03\0\x07\0\0\0\0\0"] {
            assert!(to_disk(bad).is_err(), "{bad:?}");
        }
    }
}
