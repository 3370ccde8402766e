//! The installed packages of a manifest's base image.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmbake_common::message;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::tree::{Tree, TreeError};

use super::ClosureError;
use crate::prove::LOCAL;
use crate::resolve::{Resolver, WantedBase};
use crate::root_base;
use vmbake_image::inspect::open_some;
use vmbake_manifest::{Content, INSTALLED, Manifest};
use vmbake_proof::apt::PackageIndex;

const STATUS: &str = "/var/lib/dpkg/status";

/// Maximum size of dpkg's status file in bytes: those of images have 1 to 10 MB.
const MAX_STATUS: u64 = 64 << 20;

/// Reads the status file of the base that a manifest pins. Also gives packages that it had: those that its layers removed if vmbake baked it, and
/// those of which only the configuration is left.
pub(super) fn installed(
    resolver: &Resolver<'_>,
    content: &Content,
) -> Result<(PackageIndex, BTreeSet<String>), ClosureError> {
    let (path, tree) = match root_base::read(resolver.store, Some(resolver.client), content)? {
        Some(base) => (base.path, base.tree),
        None => {
            let (path, partition) = image(resolver, content)?;
            let wants = [STATUS, INSTALLED].map(|path| Want { path: path.as_bytes(), depth: Depth::Node });
            let tree = open_some(&path, partition, &wants).map_err(|source| {
                ClosureError::Message(message!("{}: cannot read the base image", path.display()).by(source))
            })?;
            (path, tree)
        }
    };
    match tree.read(STATUS.as_bytes(), MAX_STATUS) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            let mut left = removed(&tree);
            left.extend(configured_once(&text));
            Ok((PackageIndex::installed(&text), left))
        }
        Err(TreeError::NotFound { .. }) => Err(ClosureError::NoStatus { path }),
        Err(source) => {
            Err(ClosureError::Message(message!("{}: cannot read dpkg's status file", path.display()).by(source)))
        }
    }
}

/// The packages that the layers of an image removed, as its own manifest says.
fn removed(tree: &Tree) -> BTreeSet<String> {
    let text = tree.read(INSTALLED.as_bytes(), MAX_STATUS).ok();
    let manifest = text.and_then(|text| Manifest::parse(Path::new(INSTALLED), text).ok());
    manifest.map(|manifest| manifest.content().removed_packages().map(str::to_owned).collect()).unwrap_or_default()
}

/// The packages of which only the configuration is left.
fn configured_once(status: &str) -> impl Iterator<Item = String> {
    let is_left =
        |stanza: &&str| stanza.lines().any(|line| line.starts_with("Status: ") && line.ends_with(" config-files"));
    let name = |stanza: &str| stanza.lines().find_map(|line| line.strip_prefix("Package: ")).map(str::to_owned);
    status.split("\n\n").filter(is_left).filter_map(name)
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
