//! How far a store is believed: by who else can write to it.
//!
//! What a store says without being hashed is only as good as the folders that it is in. One that others can write to is refused, as
//! they could plant files there; if this user cannot write to it either, its blobs are as good as any file from somewhere. Where others
//! can only replace the store as a whole, because a folder above it is theirs too, its blobs are used and written as well.

use std::iter;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};

use super::StoreError;
use vmbake_common::ownership::{self, Exposed};

/// The folders in a store that blobs and records are in.
const FOLDERS: [&str; 8] =
    ["blobs", "blobs/sha256", "blobs/sha512", "partial", "seen", "decoded", super::BAKES, super::VERDICTS];

/// What is used of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Everything.
    Believed,
    /// Blobs, each hashed, for this reason.
    Exposed(Exposed),
    /// Blobs, each hashed, as it was asked for.
    Uncached,
}

impl Standing {
    pub(super) fn of(root: &Path) -> Result<Self, StoreError> {
        let inner = || FOLDERS.iter().map(|name| root.join(name));
        let folders = || iter::once(root.to_owned()).chain(inner()).filter(|folder| folder.is_dir());
        if let Some(exposed) = folders().find_map(|folder| ownership::folder(&folder).err()) {
            return match folders().find(|folder| is_writable(folder)) {
                Some(_) => Err(StoreError::Exposed { path: root.to_owned(), exposed }),
                None => Ok(Self::Exposed(exposed)),
            };
        }
        Ok(ownership::folders(root).map_or_else(Self::Exposed, |()| Self::Believed))
    }
}

/// What the system does not tell counts as writable.
fn is_writable(folder: &Path) -> bool {
    use rustix::io::Errno;
    let can = rustix::fs::accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS);
    !matches!(can, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
}
