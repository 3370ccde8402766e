//! Bases that are a root file system without a disk, as an archive or a container image: their trees, from verified
//! files of the store.

use std::path::PathBuf;

use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_disk::tree::Tree;
use vmbake_manifest::{ArtifactType, Content};
use vmbake_store::http::Client;
use vmbake_store::registry::{RegistryError, pull_pinned};
use vmbake_store::store::{Store, StoreError};
use vmbake_unpack::root::{self, RootError, RootForm, RootLayer};

use crate::prove::LOCAL;

/// Why such a base was not read.
#[derive(Debug, thiserror::Error)]
pub enum RootBaseError {
    #[error("the manifest pins {url} as the base, which is a local file, and it is not in the store")]
    Local { url: String },
    #[error("{url}: cannot read the base from the store")]
    Missing { url: String, source: Box<RootError> },
    #[error("{url}: cannot pull the base")]
    Pull { url: String, source: Box<RegistryError> },
    #[error("{path}: the base has {found}, expected {expected} according to the manifest")]
    Differs { path: PathBuf, found: String, expected: String },
    #[error(transparent)]
    Root(#[from] Box<RootError>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hint for RootBaseError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Local { .. } => "use --base to name the file",
            Self::Missing { .. } => "download what is missing with `vmbake fetch` or a bake without --offline",
            Self::Differs { .. } => {
                "delete this file of the store, then run `vmbake update KIND --base FILE` to store it again"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Root, Store; Missing, Pull);
}

/// A base that was read.
#[derive(Debug)]
pub struct RootBase {
    /// Its file, or its address, for messages.
    pub path: PathBuf,
    pub digest: Digest,
    pub tree: Tree,
}

/// Reads the base that a manifest pins; a missing container image is pulled if there is a client. `None` if the manifest
/// pins no such base.
pub fn read(store: &Store, client: Option<&Client>, content: &Content) -> Result<Option<RootBase>, RootBaseError> {
    let Some(base) = content.root_base() else { return Ok(None) };
    let (url, digest) = (|| base.url.clone(), base.digest);
    let (path, layers, form) = match content.base_container() {
        Some(image) => {
            if let Some(client) = client {
                pull_pinned(client, store, &image)
                    .map_err(|source| RootBaseError::Pull { url: url(), source: source.into() })?;
            }
            let layers = root::container(store, digest, &image.platform);
            let layers = layers.map_err(|source| RootBaseError::Missing { url: url(), source: source.into() })?;
            (PathBuf::from(url()), layers, RootForm::Container)
        }
        None => {
            let path = store.path(&digest);
            let file = store.blob(&digest)?.ok_or_else(|| RootBaseError::Local { url: url() })?;
            let hashed = store.digest(&path, &file, &digest);
            let found = hashed.map_err(|source| StoreError::Read { path: path.clone(), source })?;
            if found != (digest, base.size) {
                let text = |(digest, len): (Digest, u64)| format!("digest {digest} and {len} bytes");
                let (found, expected) = (text(found), text((digest, base.size)));
                return Err(RootBaseError::Differs { path, found, expected });
            }
            let name = url().trim_start_matches(LOCAL).to_owned();
            (PathBuf::from(&name), vec![RootLayer { name, digest, file }], RootForm::Archive)
        }
    };
    let tree = root::read(&layers, form, store).map_err(Box::new)?;
    Ok(Some(RootBase { path, digest, tree }))
}

/// Whether the type of a base is that of a root file system.
pub(crate) fn is_root(kind: ArtifactType) -> bool {
    matches!(kind, ArtifactType::Tar | ArtifactType::Oci)
}
