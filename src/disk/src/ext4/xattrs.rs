//! Extended attributes between their form on disk and that of `getxattr(2)`.

use std::collections::BTreeMap;

use mkext4::spec::XattrEntry;

use super::error::REBUILD;
use super::{Place, ReadError, acl};

/// Attributes by full name.
pub(super) type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The attributes whose values have one form on disk and another in system calls.
pub(super) const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Names and values of decoded entries.
pub(super) fn decode(entries: Vec<XattrEntry>, place: &Place) -> Result<Xattrs, ReadError> {
    let mut all = Xattrs::new();
    for entry in entries {
        let Some(name) = entry.full_name() else {
            let feature = format!("attribute of namespace {}", entry.name_index);
            return Err(ReadError::unsupported(place.clone(), feature, REBUILD));
        };
        let shown = String::from_utf8_lossy(&name).into_owned();
        if name.contains(&0) || (ACLS.iter().any(|acl| name.starts_with(acl)) && !ACLS.contains(&name.as_slice())) {
            return Err(ReadError::corrupt(place.clone(), format!("attribute name {shown:?}")));
        }
        let value = if ACLS.contains(&name.as_slice()) {
            acl::from_disk(&entry.value)
                .map_err(|what| ReadError::corrupt(place.clone(), format!("attribute {shown}: {what}")))?
        } else {
            entry.value
        };
        if all.insert(name, value).is_some() {
            return Err(ReadError::corrupt(place.clone(), format!("attribute {shown} twice")));
        }
    }
    Ok(all)
}
