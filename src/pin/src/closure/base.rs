//! The installed packages of a manifest's base image.

use std::path::PathBuf;

use vmbake_common::message;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::tree::TreeError;

use super::ClosureError;
use crate::prove::LOCAL;
use crate::resolve::{Resolver, WantedBase};
use crate::root_base;
use vmbake_image::inspect::open_some;
use vmbake_manifest::Content;
use vmbake_proof::apt::PackageIndex;

const STATUS: &str = "/var/lib/dpkg/status";

/// Maximum size of dpkg's status file in bytes: those of images have 1 to 10 MB.
const MAX_STATUS: u64 = 64 << 20;

/// Reads the status file of the base image that a manifest pins.
pub(super) fn installed(resolver: &Resolver<'_>, content: &Content) -> Result<PackageIndex, ClosureError> {
    let (path, tree) = match root_base::read(resolver.store, Some(resolver.client), content)? {
        Some(base) => (base.path, base.tree),
        None => {
            let (path, partition) = image(resolver, content)?;
            let wants = [Want { path: STATUS.as_bytes(), depth: Depth::Node }];
            let tree = open_some(&path, partition, &wants).map_err(|source| {
                ClosureError::Message(message!("{}: cannot read the base image", path.display()).by(source))
            })?;
            (path, tree)
        }
    };
    match tree.read(STATUS.as_bytes(), MAX_STATUS) {
        Ok(text) => Ok(PackageIndex::installed(&String::from_utf8_lossy(&text))),
        Err(TreeError::NotFound { .. }) => Err(ClosureError::NoStatus { path }),
        Err(source) => {
            Err(ClosureError::Message(message!("{}: cannot read dpkg's status file", path.display()).by(source)))
        }
    }
}

/// The path of the image, downloaded if necessary, and the number of its root partition if it was given.
fn image(resolver: &Resolver<'_>, content: &Content) -> Result<(PathBuf, Option<u32>), ClosureError> {
    if let Some(WantedBase::Disk { path, partition }) = &resolver.base {
        return Ok((path.clone(), *partition));
    }
    let Some(image) = &content.os.image else { return Err(ClosureError::NoBase { manifest: content.target().name() }) };
    if image.url.starts_with(LOCAL) {
        return Err(ClosureError::LocalBase { url: image.url.clone() });
    }
    resolver.fetch(image)?;
    Ok((resolver.store.path(&image.digest), None))
}
