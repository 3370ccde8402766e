//! Finds every artifact of a manifest in the store: [`Manifest`] in, [`Fetched`] out.
//!
//! Nothing is downloaded: an artifact that is not in the store stops the bake with its name and its address.

use std::fs::File;
use std::path::PathBuf;

use crate::manifest::{Dependency, Manifest};
use crate::store::Store;

/// Why the artifacts are not complete.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FetchError {
    #[error("{name} {version} is not in the store: {path} is missing (from {url})")]
    Missing { name: String, version: String, url: String, path: PathBuf },
    #[error("{path}: cannot open artifact {name}")]
    Open { name: String, path: PathBuf, source: std::io::Error },
}

/// An artifact in the store that nobody has checked yet.
#[derive(Debug)]
pub(crate) struct FetchedArtifact {
    pub(crate) name: String,
    pub(crate) dependency: Dependency,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

/// All artifacts of a manifest, opened but not verified; made only by [`fetch`].
#[derive(Debug)]
pub struct Fetched {
    pub(crate) artifacts: Vec<FetchedArtifact>,
}

/// Opens every artifact of `manifest` in `store`.
pub fn fetch(manifest: &Manifest, store: &Store) -> Result<Fetched, FetchError> {
    let open = |(name, dependency): (&String, &Dependency)| {
        let path = store.path(&dependency.digest);
        match File::open(&path) {
            Ok(file) => Ok(FetchedArtifact { name: name.clone(), dependency: dependency.clone(), path, file }),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Err(FetchError::Missing {
                name: name.clone(),
                version: dependency.version.clone(),
                url: dependency.url.clone(),
                path,
            }),
            Err(source) => Err(FetchError::Open { name: name.clone(), path, source }),
        }
    };
    let artifacts = manifest.content().dependencies.iter().map(open).collect::<Result<_, _>>()?;
    Ok(Fetched { artifacts })
}
