//! What to do about an error: the `hint:` line below it.

use std::error::Error;

use crate::fetch::FetchError;
use crate::publish::PublishError;
use crate::verify::VerifyError;

/// The first advice that any error of the chain has.
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(hint) = of_one(error) {
            return Some(hint);
        }
        next = error.source();
    }
    None
}

fn of_one(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(FetchError::Missing { .. }) = error.downcast_ref() {
        return Some("`make manifest` downloads the artifacts of kind node; --store names another store".to_owned());
    }
    if let Some(VerifyError::Digest { path, .. } | VerifyError::Size { path, .. }) = error.downcast_ref() {
        return Some(format!("remove {} and fetch it again, or correct the manifest", path.display()));
    }
    if let Some(PublishError::Exists { .. }) = error.downcast_ref() {
        return Some("--force replaces it".to_owned());
    }
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return match io.kind() {
            std::io::ErrorKind::StorageFull => {
                Some("the file system is full: --out names another directory".to_owned())
            }
            std::io::ErrorKind::PermissionDenied => {
                Some("vmbake needs no root, but it must read its inputs".to_owned())
            }
            _ => None,
        };
    }
    None
}
