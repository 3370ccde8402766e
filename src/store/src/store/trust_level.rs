//! How far a store is trusted, derived from its permissions.
//!
//! Caches in a store are only as trustworthy as its directories are protected. A store that others can write to is
//! refused, as they could plant files; if this user cannot write to it either, its blobs are treated like those from
//! any untrusted location. If others can only replace the store as a whole, through a parent directory, blobs are read
//! and written, too.

use std::iter;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};

use super::StoreError;
use vmbake_common::ownership::{self, InsecurePermissions};

/// The directories of a store that contain blobs and records.
const FOLDERS: [&str; 8] =
    ["blobs", "blobs/sha256", "blobs/sha512", "partial", "seen", "decoded", super::BAKES, super::VERDICTS];

/// The trusted parts of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrustLevel {
    /// Blobs and caches.
    Full,
    /// Blobs only, hashed on each use, for this reason.
    Insecure(InsecurePermissions),
    /// Blobs only, hashed on each use, by request.
    Uncached,
}

impl TrustLevel {
    pub(super) fn of(root: &Path) -> Result<Self, StoreError> {
        let inner = || FOLDERS.iter().map(|name| root.join(name));
        let folders = || iter::once(root.to_owned()).chain(inner()).filter(|folder| folder.is_dir());
        if let Some(exposed) = folders().find_map(|folder| ownership::folder(&folder).err()) {
            return match folders().find(|folder| is_writable(folder)) {
                Some(_) => Err(StoreError::InsecurePermissions { path: root.to_owned(), exposed }),
                None => Ok(Self::Insecure(exposed)),
            };
        }
        Ok(ownership::folders(root).map_or_else(Self::Insecure, |()| Self::Full))
    }
}

/// Unknown permissions count as writable.
fn is_writable(folder: &Path) -> bool {
    use rustix::io::Errno;
    let can = rustix::fs::accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS);
    !matches!(can, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
}
