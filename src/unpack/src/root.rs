//! Root file systems from archives: [`RootLayer`]s in, a [`Tree`] out.
//!
//! The layers of a container image are applied from bottom to top, with their whiteouts (OCI image specification 1.1,
//! "Image Layer Filesystem Changeset"). A whiteout hides files of lower layers only, wherever it is in its layer. In a
//! single archive, names such as `.wh.x` are names as any other.

mod layer;

use std::fs::File;

use vmbake_common::content_id::identified;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree, TreeError};
use vmbake_oci::{Descriptor, Image, InvalidPlatform, OciError, check_layer, read_document};
use vmbake_store::store::{DecodedForm, Store, StoreError};

use crate::archive::{self, ArchiveError, ArchiveLimits};
use layer::Applied;

/// Why a root file system was not read.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("{name}: not a usable archive of a root file system")]
    Archive { name: String, source: Box<ArchiveError> },
    #[error("{name}: cannot unpack {path:?}")]
    Tree { name: String, path: String, source: Box<TreeError> },
    #[error("{name}: member {path:?}: {fault}")]
    Member { name: String, path: String, fault: String },
    #[error("{name}: cannot read")]
    Read { name: String, source: std::io::Error },
    #[error(transparent)]
    Oci(#[from] OciError),
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
}

impl Hint for RootError {
    vmbake_common::causes!(Oci, Platform; Archive, Read);
}

/// An archive whose digest was verified.
#[derive(Debug)]
pub struct RootLayer {
    /// For messages.
    pub name: String,
    pub digest: Digest,
    pub file: File,
}

/// How archives form a root file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootForm {
    Archive,
    /// Layers with whiteouts.
    Container,
}

/// The layers of a container image in `store`, from bottom to top: each is verified. `manifest` is the digest of the
/// platform's manifest.
pub fn container(store: &Store, manifest: Digest, platform: &str) -> Result<Vec<RootLayer>, RootError> {
    let open = |blob: &Descriptor| {
        let digest = || Box::new(blob.digest);
        let found = store.blob(&blob.digest);
        let found = found.map_err(|source: StoreError| OciError::Blob { digest: digest(), source: source.into() })?;
        found.ok_or_else(|| OciError::Absent { digest: digest() })
    };
    let image = Image::find(manifest, &platform.parse()?, &|blob| read_document(blob, open(blob)?))?;
    let mut layers = Vec::new();
    for (layer, content) in &image.layers {
        let file = open(layer)?;
        check_layer(layer, content, &file)?;
        layers.push(RootLayer { name: layer.digest.to_string(), digest: layer.digest, file });
    }
    Ok(layers)
}

/// Unpacks a root file system. Compressed archives are decompressed once and then kept in `store`.
pub fn read(layers: &[RootLayer], form: RootForm, store: &Store) -> Result<Tree, RootError> {
    let mut tree: Option<Tree> = None;
    for RootLayer { name, digest, file } in layers {
        let opened = archive::open_kept(file, digest, store, &ArchiveLimits::BASE);
        let (plain, members) =
            opened.map_err(|source| RootError::Archive { name: name.clone(), source: source.into() })?;
        let source = FileSource::new(plain).map_err(|source| RootError::Read { name: name.clone(), source })?;
        let newest = members.iter().map(|member| member.meta.mtime).max().unwrap_or_default();
        let tree = tree.get_or_insert_with(|| empty(newest));
        let source = identified(std::sync::Arc::new(source), digest, DecodedForm::Tar.name());
        let source = tree.sources_mut().add(source);
        Applied::new(tree, name, source).all(&members, form)?;
    }
    Ok(tree.unwrap_or_else(|| empty(Timestamp::default())))
}

/// A root directory of which no archive states the metadata.
fn empty(mtime: Timestamp) -> Tree {
    let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
    Tree::new(Metadata::root(0o755, mtime), origin)
}

#[cfg(test)]
mod tests;
