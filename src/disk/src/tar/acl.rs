//! Access control lists as text (`SCHILY.acl.access`, `SCHILY.acl.default`), for programs that do not restore them from
//! extended attributes: bsdtar, and GNU tar with `--acls`.
//!
//! The value of `getxattr(2)` has a version of 4 bytes, and entries of 8 bytes: tag, permissions, ID
//! (`include/uapi/linux/posix_acl_xattr.h`), all little-endian.

/// Version of the values.
const VERSION: [u8; 4] = [2, 0, 0, 0];

/// The record of an extended attribute that is an access control list.
pub(super) fn record(name: &str) -> Option<&'static str> {
    match name {
        "system.posix_acl_access" => Some("SCHILY.acl.access"),
        "system.posix_acl_default" => Some("SCHILY.acl.default"),
        _ => None,
    }
}

/// The text of a value, with numbers as IDs; `None` if it is malformed.
pub(super) fn text(value: &[u8]) -> Option<String> {
    let (entries, rest) = value.strip_prefix(&VERSION)?.as_chunks::<8>();
    if !rest.is_empty() {
        return None;
    }
    let entry = |[tag, zero, permissions, other, id @ ..]: &[u8; 8]| {
        let (name, has_id) = match (tag, zero, other) {
            (0x01, 0, 0) => ("user", false),
            (0x02, 0, 0) => ("user", true),
            (0x04, 0, 0) => ("group", false),
            (0x08, 0, 0) => ("group", true),
            (0x10, 0, 0) => ("mask", false),
            (0x20, 0, 0) => ("other", false),
            _ => return None,
        };
        let id = if has_id { u32::from_le_bytes(*id).to_string() } else { String::new() };
        let flags = [(4, 'r'), (2, 'w'), (1, 'x')];
        let flags: String = flags.map(|(bit, flag)| if permissions & bit == 0 { '-' } else { flag }).iter().collect();
        Some(format!("{name}:{id}:{flags}"))
    };
    let entries: Option<Vec<String>> = entries.iter().map(entry).collect();
    Some(entries?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_getfacl() {
        let value = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x04\0\xe8\x03\0\0\x10\0\x05\0\xff\xff\xff\xff";
        assert_eq!(text(value).unwrap(), "user::rwx,user:1000:r--,mask::r-x");
        for bad in [&value[..3], &value[..10], b"\x01\0\0\0", b"\x02\0\0\0\x03\0\x07\0\0\0\0\0"] {
            assert_eq!(text(bad), None, "{bad:?}");
        }
    }
}
